for i in 1 2 3 4 5 6 7 8; do /tmp/rtxr/victim 2001 100 1.5 & sleep 2.2; done; wait
