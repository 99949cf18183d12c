/* bigclose UID SECONDS MIB: joins with a real page, grows the file to MIB, unlinks and closes it: the last close is asymd's */
#define _GNU_SOURCE
#include <asym/rtx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>
#include <time.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/prctl.h>
static double now(void){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec+t.tv_nsec/1e9;}
int main(int c,char**v){int uid=atoi(v[1]);double s=atof(v[2]);long mib=atol(v[3]);char d[256],n[512];long k=0;
 setgroups(0,0);setresgid(uid,uid,uid);setresuid(uid,uid,uid);prctl(PR_SET_DUMPABLE,1);
 int ok=0;double e=now()+3;while(now()<e&&!ok){for(int i=0;i<256&&!ok;i++){snprintf(d,256,"%s/%d",getenv("ASYM_RTX_DIR"),(uid+i)%256);ok=access(d,W_OK)==0;}usleep(50000);}
 if(!ok){puts("no directory");return 1;}
 for(e=now()+s;now()<e;){snprintf(n,512,"%s/asym-rtx.%d.%ld",d,getpid(),k++);int fd=open(n,O_RDWR|O_CREAT|O_EXCL,0644);
  struct asym_rtx_header h={.magic=ASYM_RTX_MAGIC,.version=ASYM_RTX_VERSION,.header_size=64,.slot_size=64,.n_slots=1};
  if(ftruncate(fd,4096)||pwrite(fd,&h,sizeof h,0)<0)perror("w");
  fchmod(fd,0644);usleep(4000);
  if(fallocate(fd,0,0,mib<<20))perror("fallocate");
  unlink(n);close(fd);usleep(10000);}
 printf("%ld files, %.0f a second\n",k,k/s);return 0;}
