package faults

import (
	"fmt"
	"math"
	"os"
)

// quietLoad is the machine's load up to which the times of a recovery say something of Almanac.
const quietLoad = 10

// loadAverage is the machine's load of the last minute; where the system does not tell, it is infinite.
func loadAverage() float64 {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return math.Inf(1)
	}
	load := math.Inf(1)
	_, _ = fmt.Sscan(string(data), &load)
	return load
}
