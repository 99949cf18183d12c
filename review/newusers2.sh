for i in $(seq 2100 2123); do setpriv --reuid=$i --regid=$i --clear-groups sleep 22 & sleep .4; done; wait
