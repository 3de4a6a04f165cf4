package rawjson

import (
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

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

// TestLevelOfRecords asks for the same word for what each logger writes.
func TestLevelOfRecords(t *testing.T) {
	audit := schemas.NewTopicOf(kinds.Audit, "trail")
	cleared := schemas.NewTopic("app")
	cleared.Anonymise = schemas.Anonymise{AfterDays: 30, Fields: []string{schemas.ColLevel}}
	for name, c := range map[string]struct {
		keys         Keys
		line         string
		level, attrs string
	}{
		"pino":               {line: `{"level":30,"time":1531171074631,"msg":"hello"}`, level: "info", attrs: "level_text=30;"},
		"bunyan":             {line: `{"name":"a","level":50}`, level: "error", attrs: "name=a;level_text=50;"},
		"log4j":              {line: `{"level":"WARN"}`, level: "warn", attrs: "level_text=WARN;"},
		"java.util.logging":  {line: `{"level":"SEVERE"}`, level: "error", attrs: "level_text=SEVERE;"},
		"Python":             {line: `{"levelname":"CRITICAL"}`, level: "crit", attrs: "levelname=CRITICAL;"},
		"Google":             {line: `{"severity":"WARNING"}`, level: "warn", attrs: "severity=WARNING;"},
		"Elastic, nested":    {line: `{"log":{"level":"Error"}}`, level: "error", attrs: "log.level=Error;"},
		"Elastic, dotted":    {line: `{"log.level":"ERROR"}`, level: "error", attrs: "log.level=ERROR;"},
		"PHP":                {line: `{"level":400,"level_name":"ERROR"}`, level: "error", attrs: "level_name=ERROR;level_text=400;"},
		"stored":             {line: `{"level":"warn"}`, level: "warn"},
		"level comes first":  {line: `{"severity":"ERROR","level":"info"}`, level: "info", attrs: "severity=ERROR;"},
		"the preferred":      {line: `{"severity":"ERROR","levelname":"INFO"}`, level: "info", attrs: "severity=ERROR;levelname=INFO;"},
		"no level's word":    {line: `{"severity":"high"}`, attrs: "severity=high;"},
		"a number elsewhere": {line: `{"severity":30}`, attrs: "severity=30;"},
		"an attribute's":     {line: `{"attributes":{"severity":"ERROR"}}`, attrs: "severity=ERROR;"},
		"an object":          {line: `{"level":"","severity":{"text":"ERROR"}}`, attrs: "severity.text=ERROR;"},
		"another kind":       {keys: Keys{Topic: &audit}, line: `{"level":"Metadata","severity":"ERROR"}`, level: "Metadata", attrs: "severity=ERROR;"},
		"mapped":             {keys: Keys{Columns: map[string]string{"prio": schemas.ColLevel}}, line: `{"prio":"ERR","severity":"info"}`, level: "error", attrs: "severity=info;level_text=ERR;"},
		"cleared later":      {keys: Keys{Topic: &cleared}, line: `{"level":"ERR"}`, level: "error", attrs: "level.level_text=ERR;"},
	} {
		t.Run(name, func(t *testing.T) {
			ev, err := c.keys.Parse([]byte(c.line))
			if err != nil {
				t.Fatal(err)
			}
			if got := attrsText(&ev); ev.Level != c.level || got != c.attrs {
				t.Errorf("level %q with %q, expected %q with %q", ev.Level, got, c.level, c.attrs)
			}
		})
	}
}
