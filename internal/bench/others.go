package bench

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Others tells how much CPU everything else on the machine took during a run:
// whether the figures are those of a quiet machine.
type Others struct {
	began     time.Time
	busy, own float64
}

// WatchOthers begins to count.
func WatchOthers() Others {
	return Others{began: time.Now(), busy: busySeconds(), own: processesCPU()}
}

// Cores is how many cores others kept busy on average since then; time that a
// hypervisor gave to other machines counts. 0 where the system does not say. The
// run's own processes must have ended.
func (o Others) Cores() float64 {
	return max(0, (busySeconds()-o.busy-(processesCPU()-o.own))/time.Since(o.began).Seconds())
}

// busySeconds is the CPU time of all processes since the boot, in seconds.
func busySeconds() float64 {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return busyOf(line)
}

// busyOf reads the first line of /proc/stat: cpu user nice system idle iowait irq
// softirq steal guest guest_nice. Guests are in user already.
func busyOf(line string) float64 {
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return 0
	}
	sum := 0.0
	for _, i := range []int{1, 2, 3, 6, 7, 8} {
		v, _ := strconv.ParseFloat(f[i], 64)
		sum += v
	}
	return sum / clockTicks
}

// ProcessesCPU is the CPU time of this process and of all that run below it, in seconds.
func ProcessesCPU() float64 {
	sum := ownCPU()
	for below := children(os.Getpid()); len(below) > 0; {
		pid := below[0]
		sum, below = sum+cpuOf(pid), append(below[1:], children(pid)...)
	}
	return sum
}

// processesCPU is the CPU time of this process and of those it started and that
// ended.
func processesCPU() float64 {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &use); err != nil {
		return ownCPU()
	}
	return ownCPU() + time.Duration(use.Utime.Nano()+use.Stime.Nano()).Seconds()
}
