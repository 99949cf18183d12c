/* ringflood UID SECONDS NFILES CHMOD0: wakes asymd alternately by NFILES pages; with CHMOD0 the files have mode 000 after 1 s */
#define _GNU_SOURCE
#include <asym/rtx.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <fcntl.h>
#include <grp.h>
#include <time.h>
#include <sys/stat.h>
#include <sys/prctl.h>
static double now(void){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec+t.tv_nsec/1e9;}
int main(int c,char**v){int uid=atoi(v[1]),nf=atoi(v[3]),ch=atoi(v[4]);char d[256],n[512];setgroups(0,0);setresgid(uid,uid,uid);setresuid(uid,uid,uid);prctl(PR_SET_DUMPABLE,1);
 int ok=0,fd[8];for(int k=0;k<60&&!ok;k++){for(int i=0;i<256&&!ok;i++){snprintf(d,256,"%s/%d",getenv("ASYM_RTX_DIR"),(uid+i)%256);ok=access(d,W_OK)==0;}usleep(50000);}
 if(!ok){puts("no dir");return 1;}
 for(int i=0;i<nf;i++){snprintf(n,512,"%s/asym-rtx.%d.%d",d,getpid(),i);fd[i]=open(n,O_RDWR|O_CREAT|O_EXCL,0644);
 struct asym_rtx_header h={.magic=ASYM_RTX_MAGIC,.version=ASYM_RTX_VERSION,.header_size=64,.slot_size=64,.n_slots=1,.n_used=1};
 ftruncate(fd[i],4096);pwrite(fd[i],&h,sizeof h,0);fchmod(fd[i],0644);}
 sleep(1);if(ch)for(int i=0;i<nf;i++)fchmod(fd[i],0);
 double e=now()+atof(v[2]);long k=0;int x=0;while(now()<e){for(int i=0;i<nf;i++)pwrite(fd[i],&x,4,28);k+=nf;}printf("%.0f wakeups/s\n",k/atof(v[2]));
 for(int i=0;i<nf;i++){snprintf(n,512,"%s/asym-rtx.%d.%d",d,getpid(),i);unlink(n);}return 0;}
