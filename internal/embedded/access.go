package embedded

import (
	"os"
	"path/filepath"
)

// reach is what the process of the engine may touch. The kernel refuses everything else: see Confines.
// SQL reads files by more ways than grants can name (file(), the paths of formats), so the process itself is bounded.
type reach struct {
	// Write are directories that it may change, with all below them.
	Write []string `json:"write"`
	// Read are directories that it may read and execute from.
	Read []string `json:"read"`
	// Files are single files that it may read.
	Files []string `json:"files"`
	// Devices are single files that it may read and write.
	Devices []string `json:"devices"`
	// Ports of TCP it may listen on. It may connect to no port.
	Ports []uint16 `json:"ports"`
}

// Unconfined says what it means that Confines is false.
const Unconfined = "this kernel cannot confine the engine (that takes Landlock, Linux 5.19 or later): " +
	"all who may run SQL read every file that this process may read. Run it under a user of its own that has no other files"

// engineAccess is the access of an engine that keeps its data in data, the directories of its disks, and reads its two
// configuration files in config.
func engineAccess(data []string, config string, e Engine, ports ...int) reach {
	a := reach{
		Write:   data,
		Read:    append([]string{config}, systemDirs...),
		Files:   append([]string{e.Path, selfExe}, systemFiles...),
		Devices: []string{"/dev/null"},
	}
	if e.Kind == EngineBinary { // it may be a script that calls the program
		a.Read = append(a.Read, "/bin", "/usr/bin")
	}
	for _, p := range ports {
		a.Ports = append(a.Ports, uint16(p))
	}
	return a
}

// resolved names each file by what its symbolic links lead to: a rule is about the file, not about a link to it.
// What is missing is left out.
func (a reach) resolved() reach {
	real := func(paths []string) (found []string) {
		for _, p := range paths {
			if r, err := filepath.EvalSymlinks(p); err == nil {
				found = append(found, r)
			}
		}
		return found
	}
	a.Write, a.Read, a.Devices = real(a.Write), real(a.Read), real(a.Devices)
	// A link of /proc leads to a program that a newer build may have replaced: it is opened as it is.
	files := a.Files
	a.Files = nil
	for _, p := range files {
		if p == selfExe {
			a.Files = append(a.Files, p)
			continue
		}
		a.Files = append(a.Files, real([]string{p})...)
	}
	return a
}

// selfExe is this very program on Linux, whatever became of its file.
const selfExe = "/proc/self/exe"

// systemDirs hold what programs are loaded from, and what the kernel tells of the machine. None holds a secret.
var systemDirs = []string{
	"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/nix/store", "/gnu/store",
	"/usr/share/zoneinfo", "/sys", "/proc/self/task",
}

// systemFiles are what an engine asks about its machine and about itself.
var systemFiles = []string{
	"/etc/ld.so.cache", "/etc/localtime", "/etc/timezone", "/dev/urandom",
	"/proc/self/maps", "/proc/self/stat", "/proc/self/statm", "/proc/self/status", "/proc/self/io",
	"/proc/self/cgroup", "/proc/self/mounts", "/proc/self/mountinfo", "/proc/self/limits",
	"/proc/meminfo", "/proc/stat", "/proc/cpuinfo", "/proc/loadavg", "/proc/uptime",
	"/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory",
	"/proc/sys/vm/max_map_count", "/proc/sys/vm/overcommit_memory", "/proc/sys/fs/file-nr",
}

// childEnviron is the whole environment of the engine: of what this process holds, passwords and keys among it, nothing
// else is its business. home is where it may write.
func childEnviron(home string, marks ...string) []string {
	env := []string{"PATH=/usr/bin:/bin", "HOME=" + home, "LANG=C.UTF-8"}
	if zone, ok := os.LookupEnv("TZ"); ok {
		env = append(env, "TZ="+zone)
	}
	return append(env, marks...)
}
