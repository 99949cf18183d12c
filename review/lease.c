#define _GNU_SOURCE
#include <asym/rtx.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
int main(void){char n[512];signal(SIGIO,SIG_IGN);snprintf(n,512,"%s/0/asym-rtx.%d.1",getenv("ASYM_RTX_DIR"),getpid());int fd=open(n,O_RDWR|O_CREAT|O_EXCL,0644);
 struct asym_rtx_header h={.magic=ASYM_RTX_MAGIC,.version=ASYM_RTX_VERSION,.header_size=64,.slot_size=64,.n_slots=1,.n_used=1};
 ftruncate(fd,4096);pwrite(fd,&h,sizeof h,0);printf("lease %d\n",fcntl(fd,F_SETLEASE,F_WRLCK));for(int i=0;i<3;i++){fchmod(fd,0644);sleep(1);}unlink(n);return 0;}
