/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Declarations that the files of the RTX server share. */
#ifndef ASYM_LINUX_RTX_SERVER_INTERNAL_H
#define ASYM_LINUX_RTX_SERVER_INTERNAL_H

#include <asym/rtx.h>

#include "linux/rtx/rtx-overlay.h"
#include "linux/rtx/rtx-server.h"

/*
 * rtx-page.c: reads a page of a program, or a copy of its beginning (include/asym/rtx.h). The functions read nothing outside the
 * page and do bounded work, whatever the page contains and even if it changes meanwhile. No I/O.
 */

#define ASYM_RTXD_MAX_SLOTS     4096
#define ASYM_RTXD_MAX_SLOT_SIZE 256
/** Maximum size of a page, bytes. */
#define ASYM_RTXD_MAX_PAGE ((size_t)ASYM_RTXD_MAX_SLOTS * ASYM_RTXD_MAX_SLOT_SIZE + 65536)

/** Layout of a page. It is read once, as the program may change the header afterwards. */
struct asym_rtxd_layout {
    uint32_t header_size, slot_size, n_slots;
    asym_usec notify_min; /**< microseconds, 1 to ASYM_RTX_NOTIFY_MIN_MAX, whatever the header says */
};

/** A slot at the last read. */
struct asym_rtxd_reading {
    uint64_t word;
    uint64_t shown;  /**< the word in the last full snapshot */
    asym_usec since; /**< time since which the slot has had this word */
    int32_t tid;
};

/** Check the header of a page of `size` bytes. 0; -EPROTONOSUPPORT: a later version; -EPROTO: an invalid header. */
int asym_rtxd_check_page(const void *page, size_t size, struct asym_rtxd_layout *ret);

/** State of a page between two reads. All zero at first, except readings. */
struct asym_rtxd_page_state {
    struct asym_rtxd_reading *readings; /**< n_slots entries, zero at first; owned by the caller */
    uint64_t phase;                     /**< asym_rtxd_phase() at the last read with ASYM_ASK_FINAL */
    bool serial;                        /**< the program was in a serial phase at the last read */
};

/** Returns a hash of the masters in a serial phase among the first `most` slots; 0: none. Cheaper than asym_rtxd_read(). */
uint64_t asym_rtxd_phase(const void *page, const struct asym_rtxd_layout *layout, size_t most);

/**
 * Read the first `most` slots at time now. Outside a serial phase, a wait shorter than spin_notify (microseconds) does not
 * count. When a serial phase ends, waits that are still open count only from 10 ms later: the waiting threads are about to get
 * work.
 * how: ASYM_ASK_*; `changed` is relative to the last read with ASYM_ASK_FINAL and without ASYM_ASK_REFRESH. ret: room for
 * n_slots or `most` entries; they come in ascending order of tid, each tid at most once. Returns their number.
 */
size_t asym_rtxd_read(const void *page, const struct asym_rtxd_layout *layout, size_t most, asym_usec now,
                      asym_usec spin_notify, unsigned how, struct asym_rtxd_page_state *state,
                      struct asym_rtxd_thread_report *ret);

/** Result of the last asym_rtxd_server_serve() for the page of a client. */
enum asym_rtxd_client_sample {
    ASYM_RTXD_NOT_SAMPLED,   /**< it has not read the page */
    ASYM_RTXD_NO_REPORT,     /**< it has read the page: no serial phase has begun or ended, or the answer is deferred */
    ASYM_RTXD_PHASE_CHANGED, /**< it has read the page: a serial phase has begun or ended, and asymd answers */
};

/** This says whether asymd hears a client's wakeups. Each state excludes the others. */
enum asym_rtxd_client_hearing {
    ASYM_RTXD_HEARD,
    ASYM_RTXD_THROTTLED, /**< it woke asymd in vain too often: not heard before the next housekeeping */
    ASYM_RTXD_DEFERRED,  /**< it has no CPU time for an answer: not heard until it has */
};

struct asym_rtxd_client {
    int dir;     /* of its user; borrowed */
    int process; /* /proc/PID/ns, which stays that of this process, also if another one gets the number */
    int watch;   /* of its page */
    ino_t inode; /* of its page; 0: not opened yet */
    pid_t pid;
    uid_t uid;
    uint64_t number; /* PID.N: N */
    uint64_t start;  /* start time of the process */
    uint64_t order;  /* a later client has a higher one */
    asym_usec reported_at;
    asym_usec again_at; /* when asymd samples the page once more after a wakeup; 0: never */
    enum asym_rtxd_client_sample sample;
    enum asym_rtxd_client_hearing hearing;
    struct asym_rtxd_layout layout;
    size_t n_known; /* slots in use at the last read */
    struct asym_rtxd_page_state page_state;
    struct asym_rtxd_thread_report *said; /* its last answer */
    size_t n_said;
    asym_usec said_at;
    double saved;            /* CPU time left for answers, microseconds; below 0: overspent */
    double part;             /* share of the earned CPU time, 0 to 1 */
    unsigned n_wakeups;      /* since the last sample */
    unsigned n_vain_wakeups; /* consecutive samples for a wakeup without a change of phase */
    unsigned n_missed;       /* consecutive failures to open the page */
    bool ended;              /* the next asym_rtxd_sweep() frees it */
    bool active;             /* it has reported a phase within ASYM_RTXD_ACTIVE: it holds and earns CPU time */
    bool unanswered;         /* no answer contains its latest change of phase yet */
    bool full_answer;        /* its last answer was to a question without ASYM_ASK_REFRESH */
};

/** A user, and the directory for the user's pages. */
struct asym_rtxd_user {
    uid_t uid;
    int dir, watch;
    unsigned n_announced; /* since the last housekeeping */
    unsigned taken;       /* files of the user that have been considered since then */
};

/** Directories that asymd makes at once, in a directory whose name is secret as long as none of them is lent. */
#define ASYM_RTXD_OF_POOL 32
#define ASYM_RTXD_POOLS   (ASYM_RTX_MAX_USERS / ASYM_RTXD_OF_POOL)

struct asym_rtxd_server {
    struct asym_rtxd_provider provider;
    struct asym_rtxd_server_config config;
    char path[108]; /* of the directory */
    int dir, inotify;
    int slot, entry; /* a number that rtx-directory.c borrows; its entry in /proc/self/fd */
    char slot_path[32];
    dev_t device;
    bool for_all; /* the directory is a file system of its own: asymd serves all users, not its own alone */
    char *copy;   /* buffer for a page: ASYM_RTXD_PAGE_SIZE bytes */
    struct asym_rtxd_user users[ASYM_RTX_MAX_USERS];
    size_t n_users;
    struct asym_rtx_user *table;                                 /* that of the programs, mapped */
    uint64_t pools[ASYM_RTXD_POOLS], numbers[ASYM_RTXD_OF_POOL]; /* names: of all pools, and in the latest one */
    size_t n_filled;                                             /* pools that have directories */
    /* Processes whose users asymd knows, by pid, modulo the size. */
    struct {
        int32_t pid;
        uint64_t start;
    } met[ASYM_RTXD_MAX_MET];
    size_t n_met;       /* looked up since the last housekeeping */
    unsigned n_rounds;  /* calls of housekeeping */
    double reserve;     /* microseconds of CPU time that no client holds; below 0: overspent */
    asym_usec settled;  /* CPU time earned up to then has been divided */
    unsigned taken;     /* files considered since the last housekeeping */
    unsigned ends;      /* reported since the last housekeeping although the reserve was overspent */
    bool gone_reported; /* the last serve returned true because of an ended program */
    bool gone;          /* a program ended in a serial phase; serve has not reported it yet */
    uint64_t order;     /* of the latest client */
    struct asym_rtxd_client *clients[ASYM_RTXD_MAX_CLIENTS]; /* in ascending order of pid */
    size_t n;
    /* The provider's answer. */
    struct asym_rtxd_program_report program_reports[ASYM_RTXD_MAX_CLIENTS];
};

/** Mark the client as ended: the next asym_rtxd_sweep() frees it. The end of a program ends its serial phase. */
static inline void asym_rtxd_end(struct asym_rtxd_server *s, struct asym_rtxd_client *c)
{
    s->gone |= c->page_state.phase != 0;
    c->ended = true;
}

/* rtx-directory.c */

/** Open the directory, and that of asymd's own user. 0; -errno with err. */
int asym_rtxd_directory_open(struct asym_rtxd_server *s, const char *state_dir, struct asym_error *err);

/** Remove the directory if it is no file system of its own. In one, a user can make rmdir(2) wait. */
void asym_rtxd_directory_close(struct asym_rtxd_server *s);

/** Let a user into a directory. 0; -EPERM: asymd serves its own user alone; -ENOSPC: ASYM_RTX_MAX_USERS others; -errno. */
int asym_rtxd_add_user(struct asym_rtxd_server *s, uid_t uid);

/** Ignore the announcements of a user, or heed them again. */
void asym_rtxd_heed_user(struct asym_rtxd_server *s, struct asym_rtxd_user *user, bool heed);

/** Open a directory that asym_rtxd_is_of_user() looks at. Returns its descriptor; -errno. */
int asym_rtxd_open_process(pid_t pid);

/**
 * Returns whether the process lives, and has the client's user alone. It takes 0.3 us: /proc/PID/status has all user IDs, but takes
 * 2.4 ms for a process of 65,536 groups.
 */
bool asym_rtxd_is_of_user(const struct asym_rtxd_client *c);

/**
 * Open the page for reading, without a wait. Returns its descriptor; -EPROTO: it is no regular file of the user, with one name and
 * mode 0644, or not the file that it was at the first call; -errno.
 */
int asym_rtxd_open_page(const struct asym_rtxd_server *s, struct asym_rtxd_client *c);

/** Watch an open file for these events. Returns the number of the watch; -errno. */
int asym_rtxd_watch(const struct asym_rtxd_server *s, int fd, uint32_t events);

/* rtx-admit.c */

/** Size of the largest page, bytes. */
#define ASYM_RTXD_PAGE_SIZE ((size_t)ASYM_RTX_PAGE_MAX)

/** The function meet of the server's provider: let in the user of a process, unless asymd has looked it up before. */
void asym_rtxd_meet(struct asym_rtxd_provider *provider, int32_t pid, uint64_t start);

/** Free the clients that have ended. */
void asym_rtxd_sweep(struct asym_rtxd_server *s);

/**
 * Copy the used slots of a page, at most `most`, to s->copy. Returns their number; -errno: try again later, or the client has
 * ended, because it has no page with magic any more, or its process has another user.
 */
ssize_t asym_rtxd_copy_page(struct asym_rtxd_server *s, struct asym_rtxd_client *c, size_t most);

/** Admit the program that has announced this file, or refuse it. */
void asym_rtxd_admit(struct asym_rtxd_server *s, struct asym_rtxd_user *user, const char *name, asym_usec now);

/** Hear the wakeups of a client from now on, or not. Its end is heard in any case. */
void asym_rtxd_hear(struct asym_rtxd_server *s, struct asym_rtxd_client *c, enum asym_rtxd_client_hearing how);

/*
 * rtx-server-share.c: divides the CPU time for answers fairly among the programs. asym_token_bucket (base/token-bucket.h) has
 * another rule: there each bucket earns at a rate of its own. With one for each user, a single user would get only a part of the
 * CPU time, and the processes of a user would take it from each other.
 */

/** Divide the CPU time earned up to now; retire clients without a report within ASYM_RTXD_ACTIVE. */
void asym_rtxd_settle(struct asym_rtxd_server *s, asym_usec now);

/** The client has reported a phase and becomes active. Returns whether asymd may answer it now. */
bool asym_rtxd_may_answer(struct asym_rtxd_server *s, struct asym_rtxd_client *c, asym_usec now);

/** Returns whether the client may be sampled: it is not active, or has not overspent. */
bool asym_rtxd_has_cpu_time(struct asym_rtxd_server *s, struct asym_rtxd_client *c);

/** Make the client inactive; its CPU time, or its debt, goes to the reserve. */
void asym_rtxd_retire(struct asym_rtxd_server *s, struct asym_rtxd_client *c);

#endif
