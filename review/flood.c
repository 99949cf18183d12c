/* flood UID SECONDS FILES THREADS: announce FILES files alternately, in THREADS processes, with names of 200 characters (dir lent) */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>
#include <time.h>
#include <errno.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/prctl.h>
static double now(void){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec+t.tv_nsec/1e9;}
int main(int c,char**v){int uid=atoi(v[1]);double s=atof(v[2]);int nf=atoi(v[3]),nt=atoi(v[4]);char d[256],n[512];
 setgroups(0,0);setresgid(uid,uid,uid);setresuid(uid,uid,uid);prctl(PR_SET_DUMPABLE,1);
 double e=now()+s+3;int ok=0;
 while(now()<e-s){for(int i=0;i<256;i++){snprintf(d,256,"%s/%d",getenv("ASYM_RTX_DIR"),(uid+i)%256);if(access(d,W_OK)==0){ok=1;break;}}if(ok)break;usleep(50000);}
 if(!ok){puts("no directory");return 1;}
 e=now()+s;
 for(int t=0;t<nt;t++)if(!fork()){prctl(PR_SET_PDEATHSIG,9);int fd[256];
  for(int i=0;i<nf;i++){snprintf(n,512,"%s/asym-rtx.%d.%d",d,getpid(),i);fd[i]=open(n,O_RDWR|O_CREAT,0644);if(fd[i]<0){perror(n);_exit(1);}}
  long k=0;while(now()<e){for(int i=0;i<nf;i++)fchmod(fd[i],0644);k+=nf;}
  for(int i=0;i<nf;i++){snprintf(n,512,"%s/asym-rtx.%d.%d",d,getpid(),i);unlink(n);}
  printf("%ld announcements/s\n",(long)(k/s));fflush(stdout);_exit(0);}
 while(wait(0)>0);return 0;}
