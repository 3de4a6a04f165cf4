package fields

import "testing"

func TestLevel(t *testing.T) {
	for sent, want := range map[string]string{
		"": "", "info": "info", "INFO": "info", "Information": "info", "informational": "info",
		"err": "error", "ERROR": "error", "warning": "warn", "Warn": "warn", "critical": "crit", "CRIT": "crit",
		"notice": "notice", "alert": "alert", "emergency": "emerg", "emerg": "emerg", " debug ": "debug",
		"10": "trace", "20": "debug", "30": "info", "35": "info", "40": "warn", "50": "error", "60": "fatal", "61": "fatal",
		"6": "6", "404": "404", "-20": "-20", "silly": "silly", "FATAL": "fatal",
	} {
		t.Run(sent, func(t *testing.T) {
			if got := Level(sent); got != want {
				t.Errorf("Level(%q) is %q, expected %q", sent, got, want)
			}
			if again := Level(want); again != want && want != sent {
				t.Errorf("Level(%q) is %q: a stored word must stay", want, again)
			}
		})
	}
}
