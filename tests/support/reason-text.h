/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Checks of the reasons of policies. Tests identify a reason by words of its text, because the object is private to the policy.
 */
#ifndef ASYM_TESTS_SUPPORT_REASON_TEXT_H
#define ASYM_TESTS_SUPPORT_REASON_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <asym/plan.h>

static inline bool is_why(const struct asym_reason *reason, const char *words)
{
    return reason && strstr(reason->text, words);
}

/** Returns true if the format takes at most the two figures, as %.Nf or %g. */
static inline bool why_format_is_well_formed(const char *text)
{
    unsigned n = 0;
    for (const char *p = strchr(text, '%'); p; p = strchr(p + 1, '%')) {
        const size_t length = p[1] == '.' ? 4 : 2;
        n += p[1] != '%';
        p += length - 1;
        if (n > 2 || !strchr(length == 4 ? "f" : "g%", *p) || !*p)
            return false;
    }
    return !strchr(text, '\n');
}

/** The same for the text and the sentence. The latter begins with a verb, and the full stop is not part of it. */
static inline bool why_is_well_formed(const struct asym_reason *reason)
{
    const char *s = reason->sentence;
    return why_format_is_well_formed(reason->text) && (!reason->several || !strchr(reason->several, '%')) &&
           (!s || (why_format_is_well_formed(s) && *s >= 'a' && *s <= 'z' && s[strlen(s) - 1] != '.'));
}

/**
 * Returns true if the text with these figures is also not empty and has no nan or inf. Formatting is slow, so what was sound
 * before is remembered.
 */
static inline bool why_is_sound(const struct asym_reason *reason, const double figure[2])
{
    static struct {
        const struct asym_reason *reason;
        uint64_t figure[2];
    } known[1 << 13];
    char text[256];
    uint64_t bits[2];
    memcpy(bits, figure, sizeof bits);
    const uint64_t h = (bits[0] * 3 ^ bits[1] ^ (uintptr_t)reason >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 51;
    if (reason == known[h].reason && memcmp(bits, known[h].figure, sizeof bits) == 0)
        return true;
    if (!why_is_well_formed(reason) || !*asym_reason_text(reason, figure, text, sizeof text) || strstr(text, "nan") ||
        strstr(text, "inf"))
        return false;
    known[h].reason = reason;
    memcpy(known[h].figure, bits, sizeof bits);
    return true;
}

/* words: of the text of the reason itself, before its figures are filled in. */
#define assert_why(reason, words)                                                                                      \
    do {                                                                                                               \
        if (!is_why(reason, words))                                                                                    \
            fail_msg("the reason is '%s', not '%s'", (reason) ? (reason)->text : "none", words);                       \
    } while (0)

#endif
