package embedded

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// assumedMemory stands for the machine's memory where it is not told.
const assumedMemory = 8 << 30

// machineMemory is the memory of this machine in bytes, or of its control group if that has less.
func machineMemory() int64 {
	total := int64(assumedMemory)
	if f, err := os.Open("/proc/meminfo"); err == nil {
		defer func() { _ = f.Close() }()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if len(fields) < 2 || fields[0] != "MemTotal:" {
				continue
			}
			if kib, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				total = kib << 10
			}
			break
		}
	}
	if text, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil { // else "max"
			total = min(total, n)
		}
	}
	return total
}
