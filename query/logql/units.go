package logql

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// units of time, by Loki's and Prometheus's names.
var units = map[string]float64{
	"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9, "d": 24 * 3600e9, "w": 7 * 24 * 3600e9, "y": 365 * 24 * 3600e9,
}

// multiples of a byte: those of 1000, and with an i those of 1024.
var multiples = map[string]float64{
	"b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "pb": 1e15, "eb": 1e18,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40, "pib": 1 << 50, "eib": 1 << 60,
}

var unitParts = regexp.MustCompile(`([0-9]+(?:\.[0-9]+)?)([a-zA-Zµ]+)`)

// measured reads texts such as 1h30m or 5MB by a table of units. All of the text must be read.
func measured(text string, by map[string]float64, fold bool) (float64, error) {
	negative := strings.HasPrefix(text, "-")
	text = strings.TrimPrefix(text, "-")
	sum, end := 0.0, 0
	for _, at := range unitParts.FindAllStringSubmatchIndex(text, -1) {
		unit := text[at[4]:at[5]]
		if fold {
			unit = strings.ToLower(unit)
		}
		n, err := strconv.ParseFloat(text[at[2]:at[3]], 64)
		factor, known := by[unit]
		if err != nil || !known || at[0] != end {
			return 0, fmt.Errorf("%q cannot be read", text)
		}
		sum, end = sum+n*factor, at[1]
	}
	if end != len(text) || end == 0 {
		return 0, fmt.Errorf("%q cannot be read", text)
	}
	if negative {
		sum = -sum
	}
	return sum, nil
}

// duration reads a length of time: with units, or a number of seconds.
func duration(text string) (time.Duration, error) {
	ns, err := measured(text, units, false)
	if err != nil {
		var s float64
		if s, err = strconv.ParseFloat(text, 64); err != nil {
			return 0, fmt.Errorf("%q is not a length of time, such as 5m", text)
		}
		ns = s * 1e9
	}
	const longest = float64(1<<63 - 1)
	if ns >= longest || ns <= -longest {
		return 0, fmt.Errorf("%q is longer than 292 years", text)
	}
	return time.Duration(ns), nil
}

// size reads a number of bytes, such as 5MB or 10KiB.
func size(text string) (float64, error) {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return n, nil
	}
	return measured(strings.ReplaceAll(text, " ", ""), multiples, true)
}

// IsSize reports whether a text is a number of bytes with its unit, as a filter of labels compares them.
func IsSize(text string) bool {
	_, err := measured(text, multiples, true)
	return err == nil
}
