/* many1000 UID N SECONDS: N sleeping processes of the user (fork, no exec); optional 4th: each joins RTX */
#define _GNU_SOURCE
#include <asym/rtx.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <grp.h>
int main(int c,char**v){int uid=atoi(v[1]),n=atoi(v[2]);unsigned s=atoi(v[3]);int j=c>4;
 setgroups(0,0);setresgid(uid,uid,uid);setresuid(uid,uid,uid);prctl(PR_SET_DUMPABLE,1);
 for(int i=0;i<n;i++)if(!fork()){prctl(PR_SET_PDEATHSIG,9);alarm(s);if(j){struct asym_rtx_options o={.size=sizeof o,.n_slots=1};for(;;){asym_rtx_join(&o);asym_rtx_thread();usleep(1000000);}}for(;;)pause();}
 sleep(s);return 0;}
