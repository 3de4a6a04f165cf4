package bench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// Machine describes what figures were measured on, without naming it.
type Machine struct {
	CPUs        int     `json:"cpus"`
	CPU         string  `json:"cpu,omitempty"`
	MemoryBytes int64   `json:"memory_bytes,omitempty"`
	OS          string  `json:"os"`
	Go          string  `json:"go"`
	NATS        string  `json:"nats"`
	ClickHouse  string  `json:"clickhouse"`
	FsyncMicros float64 `json:"fsync_us"` // median of a 64 KiB append with fsync
}

// DescribeMachine reads it, where the system says; it needs a cluster for the
// version of ClickHouse and the speed of its disk.
func (s *Suite) DescribeMachine(ctx context.Context) (Machine, error) {
	m := Machine{CPUs: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), NATS: server.VERSION}
	m.CPU, _ = procField("/proc/cpuinfo", "model name")
	if text, ok := procField("/proc/meminfo", "MemTotal"); ok {
		kib, _ := strconv.ParseInt(strings.TrimSuffix(text, " kB"), 10, 64)
		m.MemoryBytes = kib << 10
	}
	h, err := s.Environment(ctx)
	if err != nil {
		return m, err
	}
	defer h.Close()
	if m.ClickHouse, err = h.DB.Ping(ctx); err != nil {
		return m, err
	}
	m.FsyncMicros, err = fsyncMicros(h.Dir)
	return m, err
}

// Same says whether both are one machine with the same software.
func (m Machine) Same(other Machine) bool {
	m.FsyncMicros, other.FsyncMicros = 0, 0 // no two runs agree on it
	return m == other
}

// String is one line for people.
func (m Machine) String() string {
	return fmt.Sprintf("%d cores%s, %.0f GiB of memory, %s, %s, NATS %s, ClickHouse %s, fsync of 64 KiB in %.1f ms",
		m.CPUs, prefixed(" ", m.CPU), float64(m.MemoryBytes)/(1<<30), m.OS, m.Go, m.NATS, m.ClickHouse, m.FsyncMicros/1000)
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + "(" + s + ")"
}

// procField is the value of the first line "name : value" of a file.
func procField(path, name string) (string, bool) {
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if k, v, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v), true
		}
	}
	return "", false
}
