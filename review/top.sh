while read -r l; do eval "$l" & done <>/tmp/rtxr/cmd
