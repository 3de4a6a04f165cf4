package bench

import (
	"bytes"
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"

	"github.com/google/pprof/profile"
)

// labelPart is the goroutine label that names a part; children inherit it, so
// who starts a part inside pprof.Do has all its goroutines labelled.
const labelPart = "part"

// LabelPart is the label under which a caller should start the NATS server to
// have its CPU told apart: pprof.Labels(bench.LabelPart, "nats").
const LabelPart = labelPart

// partEngine is ClickHouse among the parts.
const partEngine = "clickhouse"

// meter samples this process by part and counts the engine's CPU.
type meter struct {
	buf    bytes.Buffer
	engine int
	before float64
	began  float64
}

func startCPU(enginePID int) (*meter, error) {
	m := &meter{engine: enginePID, before: cpuOf(enginePID), began: ownCPU()}
	if err := pprof.StartCPUProfile(&m.buf); err != nil {
		return nil, fmt.Errorf("bench: sampling CPU: %w", err)
	}
	return m, nil
}

// stop ends the sampling and returns microseconds an event by part, and the
// process's peak resident memory.
// The samples go to profileFile too, unless it is empty.
func (m *meter) stop(events int, profileFile string) (map[string]float64, int64, error) {
	pprof.StopCPUProfile()
	if profileFile != "" {
		if err := os.WriteFile(profileFile, m.buf.Bytes(), 0o644); err != nil {
			return nil, 0, fmt.Errorf("bench: writing the CPU profile: %w", err)
		}
	}
	p, err := profile.Parse(&m.buf)
	if err != nil {
		return nil, 0, fmt.Errorf("bench: reading the CPU profile: %w", err)
	}
	out := map[string]float64{}
	var sampled float64
	for _, s := range p.Sample {
		part := partOf(s)
		micros := float64(s.Value[len(s.Value)-1]) / 1e3
		out[part] += micros / float64(events)
		sampled += micros
	}
	// The samples say the shares, the kernel the sum.
	if total := (ownCPU() - m.began) * 1e6; sampled > 0 {
		for part := range out {
			out[part] *= total / sampled
		}
	}
	if m.engine != 0 {
		out[partEngine] = (cpuOf(m.engine) - m.before) * 1e6 / float64(events)
	}
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return out, 0, nil
	}
	return out, use.Maxrss * 1024, nil
}

// partOf is whose sample it is: by label, or, for goroutines that a timer or the
// runtime started, by what they run.
func partOf(s *profile.Sample) string {
	if l := s.Label[labelPart]; len(l) > 0 {
		return l[0]
	}
	for _, loc := range s.Location {
		for _, line := range loc.Line {
			switch name := line.Function.Name; {
			case strings.Contains(name, "nats-io/nats-server"):
				return "nats"
			case strings.HasPrefix(name, "runtime.gcBgMarkWorker"), strings.HasPrefix(name, "runtime.bgsweep"):
				return "gc"
			}
		}
	}
	return "other"
}

// ownCPU is this process's CPU time in seconds.
func ownCPU() float64 {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0
	}
	return float64(use.Utime.Sec+use.Stime.Sec) + float64(use.Utime.Usec+use.Stime.Usec)/1e6
}

// clockTicks is the unit of /proc/<pid>/stat: USER_HZ, 100 on Linux.
const clockTicks = 100

// cpuOf is another process's CPU time in seconds, 0 where it cannot be read.
func cpuOf(pid int) float64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The name, in parentheses, may hold blanks.
	f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	return (user + system) / clockTicks
}
