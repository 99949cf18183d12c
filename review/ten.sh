for i in 1 2 3 4 5 6 7 8 9 10 11 12; do /tmp/rtxr/many1000 2032 1 20 j & done; wait
