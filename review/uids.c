#define _GNU_SOURCE
#include <unistd.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
int main(void){for(int i=0;i<260;i++){if(!fork()){prctl(PR_SET_PDEATHSIG,9);setgroups(0,0);setresgid(100000+i,100000+i,100000+i);setresuid(100000+i,100000+i,100000+i);for(int k=0;k<100;k++)usleep(50000);_exit(0);}}while(wait(0)>0);return 0;}
