package fields

import (
	"strconv"
	"strings"
)

// levelWords are the texts in lower case that become another word.
var levelWords = map[string]string{
	"err": "error", "e": "error", "severe": "error",
	"warning": "warn", "w": "warn", "wrn": "warn",
	"information": "info", "informational": "info", "i": "info", "inf": "info",
	"critical": "crit", "c": "crit",
	"emergency": "emerg",
	"d":         "debug", "dbg": "debug",
	"t": "trace", "trc": "trace",
	"f": "fatal", "ftl": "fatal",
}

// numberedLevels are the levels of pino and bunyan, from the highest down.
var numberedLevels = []struct {
	from int
	word string
}{{60, "fatal"}, {50, "error"}, {40, "warn"}, {30, "info"}, {20, "debug"}, {10, "trace"}}

// maxNumberedLevel is the highest number read as a level of pino: its own go to 60,
// and HTTP statuses begin at 100.
const maxNumberedLevel = 99

// Level returns the word to store for a level as it was sent: error for ERR and
// for pino's 50. A text of no known meaning comes back in lower case. Numbers
// below 10 mean different things to different programs, so they stay.
func Level(text string) string {
	word := strings.ToLower(strings.TrimSpace(text))
	if same, ok := levelWords[word]; ok {
		return same
	}
	if word == "" || strings.IndexByte("+0123456789", word[0]) < 0 {
		return word
	}
	if n, err := strconv.Atoi(word); err == nil && n <= maxNumberedLevel {
		for _, l := range numberedLevels {
			if n >= l.from {
				return l.word
			}
		}
	}
	return word
}
