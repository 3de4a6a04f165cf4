package rawjson

import (
	"slices"
	"strconv"
	"strings"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// levelWords are the texts in lower case that mean a level, with the word that is stored. A level is
// one word, the same whatever client sent it, so that a filter on "error" finds what syslog calls err and
// log4j ERROR. Words that only some clients have, such as notice, stay.
var levelWords = map[string]string{
	"trace": "trace", "t": "trace", "trc": "trace", "verbose": "trace", "finest": "trace", "finer": "trace",
	"debug": "debug", "d": "debug", "dbg": "debug", "dbug": "debug", "fine": "debug",
	"info": "info", "information": "info", "informational": "info", "i": "info", "inf": "info",
	"notice": "notice",
	"warn":   "warn", "warning": "warn", "w": "warn", "wrn": "warn",
	"error": "error", "err": "error", "e": "error", "eror": "error", "severe": "error",
	"crit": "crit", "critical": "crit", "c": "crit",
	"alert": "alert",
	"emerg": "emerg", "emergency": "emerg",
	"fatal": "fatal", "f": "fatal", "ftl": "fatal",
	"panic": "panic", "dpanic": "dpanic",
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
	if !numeric(word) {
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

// numeric reports whether a text begins as a number.
func numeric(text string) bool { return text != "" && strings.IndexByte("+-0123456789", text[0]) >= 0 }

// levelKeys are the names under which loggers that do not write "level" write a word for it, the preferred
// one first: Python, Elastic's schema, Google, OpenTelemetry, PHP, .NET, Serilog, Go.
var levelKeys = []string{"levelname", nestedLevel, "severity", "severity_text", "level_name", "log_level", "loglevel", "LogLevel", "@l", "lvl"}

// nestedLevel may be a key of the record, or of an object in it.
const nestedLevel = "log.level"

// levels reports whether the level of an event is a word for how much it matters. In
// kinds other than log it is what the record's own protocol says.
func (k *Keys) levels() bool {
	return k.Topic == nil || k.Topic.Kind == "" || k.Topic.Kind == kinds.Log
}

// setLevel stores the level as Level has it. The value that it changes stays as the attribute
// AttrLevelText. An event whose level is empty, or a number of no meaning, has the word that one of levelKeys
// holds, which stays an attribute as well. No other text is taken from there, so none that a rule covers.
func (f *fields) setLevel() {
	sent := f.ev.Level
	f.ev.Level = Level(sent)
	if (sent == "" || numeric(f.ev.Level)) && !f.named[fieldLevel] {
		if word := f.otherLevel(); word != "" {
			f.ev.Level = word
		}
	}
	if sent != "" && f.ev.Level != sent {
		name := f.keys.Topic.OtherName(schemas.ColLevel, schemas.AttrLevelText)
		f.rest = append(f.rest, leaf{raw: name, text: name, value: f.level})
	}
}

// otherLevel returns the level that the preferred of levelKeys holds, or "".
func (f *fields) otherLevel() (word string) {
	best := len(levelKeys)
	for i := range f.rest {
		l := &f.rest[i]
		rank := slices.Index(levelKeys, l.text)
		if rank < 0 || rank >= best || !l.top && l.text != nestedLevel {
			continue
		}
		if w, ok := levelWords[strings.ToLower(l.value.Text())]; ok {
			best, word = rank, w
		}
	}
	return word
}
