/* dwatch PID SECONDS: how long the main thread is in state D without a break, and where */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <time.h>
#include <fcntl.h>
static double now(void){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec+t.tv_nsec/1e9;}
int main(int c,char**v){char p[64],b[512],w[4096],worstw[4096]="";double e=now()+atof(v[2]),since=0,worst=0,total=0,last=now();
 while(now()<e){snprintf(p,64,"/proc/%s/stat",v[1]);int f=open(p,O_RDONLY);if(f<0)break;int n=read(f,b,511);close(f);if(n<=0)break;b[n]=0;char*s=strrchr(b,')')+2;double t=now();
  if(*s=='D'){if(!since){since=t;snprintf(p,64,"/proc/%s/stack",v[1]);f=open(p,O_RDONLY);n=f<0?0:read(f,w,4095);w[n>0?n:0]=0;close(f);}total+=t-last;if(t-since>worst){worst=t-since;strcpy(worstw,w);}}else since=0;
  last=t;usleep(1000);}
 printf("D: worst %.3f s, total %.3f s\n%s\n",worst,total,worstw);return 0;}
