for i in 1 2; do /tmp/rtxr/ringflood 2002 16 4 1 & done; wait
