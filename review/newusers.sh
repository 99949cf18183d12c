for i in 2100 2101 2102 2103 2104 2105; do sleep 2; setpriv --reuid=$i --regid=$i --clear-groups sleep 15 & done
