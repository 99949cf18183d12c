for i in $(seq 3000 3023); do /tmp/rtxr/flood $i 12 64 1 >/dev/null 2>&1 & done; wait
