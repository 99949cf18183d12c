/* victim UID PERIOD_MS SECONDS: joins, reports serial phases; prints joins lost, and the wait until it is joined */
#define _GNU_SOURCE
#include <asym/rtx.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <time.h>
#include <sys/prctl.h>
#include <grp.h>
static double now(void){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec+t.tv_nsec/1e9;}
int main(int c,char**v){
  int uid=atoi(v[1]);double period=atof(v[2])/1e3,secs=atof(v[3]);
  if(uid){setgroups(0,0);setresgid(uid,uid,uid);setresuid(uid,uid,uid);prctl(PR_SET_DUMPABLE,1);}
  double t0=now(),last=0,lost=0;int joined=0,n=0,flips=0;
  while(now()-t0<secs){
    double b=now();asym_rtx_join(NULL);double d=now()-b;if(d>.005)printf("join took %.3f s\n",d);
    int j=asym_rtx_is_joined();
    if(j!=joined){printf("%.3f uid %d pid %d %s\n",now()-t0,uid,getpid(),j?"joined":"NOT joined");fflush(stdout);flips++;joined=j;if(!j)last=now();else if(last)lost+=now()-last;}
    asym_rtx_master(1);
    asym_rtx_serial_begin();usleep(period*5e5);asym_rtx_serial_end();usleep(period*5e5);n++;
  }
  printf("uid %d phases %d flips %d unjoined %.2f s\n",uid,n,flips,lost);return 0;}
