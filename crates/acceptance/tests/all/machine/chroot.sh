# Keeps the mounts of root.sh until stdin is closed.
mount --rbind /sys sys
echo mounted
exec cat
