/* nslock UID SECONDS NMOUNTS CLONERS TARGETDIR FROM TO: lock the inodes of TARGETDIR/FROM..TO by mount(2), which waits for namespace_sem with the lock held */
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
#include <sys/wait.h>
#include <sys/prctl.h>
#include <signal.h>
#include <grp.h>
static void put(const char*p,const char*t){int f=open(p,O_WRONLY);if(f<0||write(f,t,strlen(t))<0)perror(p);close(f);}
static double now(void){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec+t.tv_nsec/1e9;}
int main(int c,char**v){int uid=atoi(v[1]);double s=atof(v[2]);int nm=atoi(v[3]),cl=atoi(v[4]);char m[256];int from=atoi(v[6]),to=atoi(v[7]);
 setgroups(0,0);setresgid(uid,uid,uid);setresuid(uid,uid,uid);prctl(PR_SET_DUMPABLE,1);
 if(unshare(CLONE_NEWUSER|CLONE_NEWNS)){perror("unshare");return 1;}
 put("/proc/self/setgroups","deny");snprintf(m,64,"0 %d 1",uid);put("/proc/self/uid_map",m);put("/proc/self/gid_map",m);
 mount("none","/",0,MS_REC|MS_PRIVATE,0);
 if(mount("t","/mnt","tmpfs",0,"")){perror("mount");return 1;}
 mkdir("/mnt/a",0755);mkdir("/mnt/b",0755);mkdir("/mnt/c",0755);
 double e=now()+s;
 for(int t=from;t<to;t++) if(!fork()){ /* lockers, each holds one inode nearly all the time */
   prctl(PR_SET_PDEATHSIG,SIGKILL);double worst=0;long n=0;
   snprintf(m,256,"%s/%d",v[5],t);
   while(now()<e){double b=now();int r=mount("/mnt/c",m,0,MS_BIND,0);double d=now()-b;if(d>worst)worst=d;if(r){perror(m);break;}umount2(m,MNT_DETACH);n++;}
   printf("locker %d: %ld mounts, worst %.3f s\n",t,n,worst);fflush(stdout);_exit(0);}
 for(int k=0;k<cl;k++) if(!fork()){prctl(PR_SET_PDEATHSIG,SIGKILL);
   if(unshare(CLONE_NEWNS))_exit(1);
   mkdir("/mnt/t",0755);if(mount("t2","/mnt/t","tmpfs",0,""))perror("t2");
   for(int i=0;(1<<i)<nm;i++){char q[64];snprintf(q,64,"/mnt/t/%d",i);mkdir(q,0755);if(mount("/mnt/t",q,0,MS_BIND|MS_REC,0)){perror("rbind");break;}}
   double worst=0;while(now()<e){double b=now();if(unshare(CLONE_NEWNS)){perror("ns");break;}double d=now()-b;if(d>worst)worst=d;}
   if(k==0)printf("cloner worst %.3f s\n",worst);fflush(stdout);_exit(0);}
 while(wait(0)>0);return 0;}
