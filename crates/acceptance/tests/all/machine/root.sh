# Makes the root of a machine in the directory $1, with a writable view of each other argument. The
# first of them is the Debian image, which becomes the root; the others keep their paths.
set -e
cd "$1"
directory=$1 image=$2
shift 2

# view SOURCE TARGET NAME
view() {
    mkdir "upper$3" "work$3"
    mount -t overlay overlay -o "lowerdir=$1,upperdir=upper$3,workdir=work$3" "$2"
}

mkdir root
view "$image" root 0
for source; do
    mkdir -p "root$source"
    view "$source" "root$source" "$#"
    shift
done
cd root
mount -t proc proc proc
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for number in 0 1 2; do
    ln -s "fd/$number" "dev/$(echo stdin stdout stderr | cut -d ' ' -f $((number + 1)))"
done
mknod -m 666 dev/null c 1 3
mknod -m 666 dev/zero c 1 5
mknod -m 666 dev/full c 1 7
mknod -m 666 dev/random c 1 8
mknod -m 666 dev/urandom c 1 9
mknod -m 666 dev/tty c 5 0
mknod dev/loop-control c 10 237
for number in $(seq 0 63); do
    mknod "dev/loop$number" b 7 "$number"
done
