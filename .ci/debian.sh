# Fresh Debians in folders, and commands in them; for .ci/bare and .ci/later. Needs Debian, root and
# debootstrap.

mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | sed -n 1p)

debian() { # of a release, in a folder, with these packages
    debootstrap --variant=minbase --include="$3" "$1" "$2" "$mirror" >"$2.log" ||
        { tail "$2.log"; exit 1; }
    mkdir "$2/given"
}

inside() { # a folder, run commands: own processes, none of our variables; then options of unshare
    unshare --pid --fork --mount --mount-proc --root="$1" "${@:3}" \
        env --ignore-environment PATH=/usr/bin:/bin HOME=/root LC_ALL=C.UTF-8 \
        sh -ec "mount -t sysfs sys /sys; $2"
}
