/* mountflood UID SECONDS: in an own user namespace, mount and umount in a loop */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <fcntl.h>
#include <time.h>
#include <errno.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/prctl.h>
#include <grp.h>
static void put(const char*p,const char*t){int f=open(p,O_WRONLY);if(f<0||write(f,t,strlen(t))<0)perror(p);close(f);}
static double now(void){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec+t.tv_nsec/1e9;}
int main(int c,char**v){int uid=atoi(v[1]);double s=atof(v[2]);char m[64];
 setgroups(0,0);setresgid(uid,uid,uid);setresuid(uid,uid,uid);prctl(PR_SET_DUMPABLE,1);
 if(unshare(CLONE_NEWUSER|CLONE_NEWNS)){perror("unshare");return 1;}
 put("/proc/self/setgroups","deny");snprintf(m,64,"0 %d 1",uid);put("/proc/self/uid_map",m);put("/proc/self/gid_map",m);
 mount("none","/",0,MS_REC|MS_PRIVATE,0);
 if(mount("t","/mnt","tmpfs",0,"")){perror("mount");return 1;}
 mkdir("/mnt/a",0755);mkdir("/mnt/b",0755);
 double e=now()+s;long n=0;while(now()<e){if(mount("/mnt/a","/mnt/b",0,MS_BIND,0)){perror("bind");return 1;}umount2("/mnt/b",MNT_DETACH);n++;}
 printf("%ld mounts/s\n",(long)(n/s));return 0;}
