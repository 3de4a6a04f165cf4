package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// raw are fragments of texts that only libraries write.
var raw = []string{
	"accepts ", "arg(s)", "strconv.", "nats: ", "invalid syntax", "invalid argument", "dial tcp", "goroutine", "%!", "server hello",
	"context deadline exceeded", "PrivacyKey", "flag needs an argument", "map[",
}

// inProcess calls the command without a process of its own: a walk makes hundreds of calls.
func inProcess(t *testing.T, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait/3)
	defer cancel()
	var out, errs bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &errs}
	code := a.execute(ctx, args)
	checkExit(t, args, code)
	return result{code: code, out: out.String(), err: errs.String()}
}

// verbs returns every command that can be run and is not hidden, by its words.
func verbs(t *testing.T) map[string]*cobra.Command {
	t.Helper()
	found := map[string]*cobra.Command{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.InheritedFlags() // merges those of its parents, before tests read them side by side
		if c.Runnable() && c.HasParent() && !c.Hidden {
			found[strings.TrimPrefix(c.CommandPath(), "almanac ")] = c
		}
		for _, child := range c.Commands() {
			walk(child)
		}
	}
	walk((&app{}).root())
	if len(found) < 30 {
		t.Fatalf("the walk found only %d verbs", len(found))
	}
	return found
}

// refused checks a refusal: its code, no raw library text, what it names, and one of the next steps.
func refused(t *testing.T, args []string, r result, code int, names []string, next ...string) {
	t.Helper()
	call := "almanac " + strings.Join(args, " ")
	if r.code != code {
		t.Errorf("%s: exit %d, want %d\n%s%s", call, r.code, code, r.out, r.err)
	}
	said := r.out + r.err
	for _, fragment := range raw {
		if strings.Contains(said, fragment) {
			t.Errorf("%s: %q in\n%s", call, fragment, said)
		}
	}
	for _, name := range names {
		if !strings.Contains(said, name) {
			t.Errorf("%s: it does not name %q:\n%s", call, name, said)
		}
	}
	for _, step := range next {
		if strings.Contains(said, step) {
			return
		}
	}
	t.Errorf("%s: it names none of %q as the next step:\n%s", call, next, said)
}

// taken returns the least and the most arguments a command takes; most is -1 without a limit.
func taken(c *cobra.Command) (least, most int) {
	const enough = 6
	least, most = -1, -1
	for n := range enough {
		args := make([]string, n)
		for i := range args {
			args[i] = "app"
		}
		fits := c.Args == nil || c.Args(c, args) == nil
		if fits && least < 0 {
			least = n
		}
		if fits {
			most = n
		}
	}
	if most == enough-1 {
		most = -1
	}
	return max(least, 0), most
}

// Wrong input of every verb is refused in a sentence that names the thing
// and the next step. New verbs are in the walk by themselves.
func TestWrongInputOfEveryVerb(t *testing.T) {
	t.Parallel()
	data := "--data=" + filepath.Join(t.TempDir(), "none")
	for words, c := range verbs(t) {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			call := func(more ...string) []string { return append(append(strings.Fields(words), data), more...) }
			least, most := taken(c)
			fit := make([]string, least)
			for i := range fit {
				fit[i] = "app"
			}
			if least > 0 {
				args := call(fit[1:]...)
				refused(t, args, inProcess(t, args...), exitUsage, []string{"almanac " + words, placeholders(c.Use)[least-1]}, "--help")
			}
			if most >= 0 {
				args := call(fit...)
				for n := least; n <= most; n++ {
					args = append(args, "surplus")
				}
				refused(t, args, inProcess(t, args...), exitUsage, []string{`"surplus"`}, "--help")
			}
			args := call(append(fit, "--no-such-thing")...)
			refused(t, args, inProcess(t, args...), exitUsage, []string{"--no-such-thing"}, "--help", "did you mean")
			for _, f := range flags(c) {
				if strings.HasPrefix(f.Value.Type(), "string") {
					if f.NoOptDefVal != "" {
						continue
					}
					args := call(append(fit, "--"+f.Name)...)
					refused(t, args, inProcess(t, args...), exitUsage, []string{"--" + f.Name}, "--help")
					continue
				}
				args := call(append(fit, "--"+f.Name+"=1x")...)
				refused(t, args, inProcess(t, args...), exitUsage, []string{"--" + f.Name, `"1x"`}, "such as", "true or false")
			}
		})
	}
}

// flags returns a command's own flags and those it inherits, but --help. The command is one of verbs.
func flags(c *cobra.Command) (all []*pflag.Flag) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			all = append(all, f)
		}
	})
	return all
}

// complete is what a verb needs besides its arguments to get as far as its servers.
var complete = map[string]string{
	"erase":         "--user u --dry-run",
	"erase redact":  "--yes",
	"erase forget":  "--yes",
	"rebuild":       "--dry-run",
	"dead drop":     "--dry-run",
	"sql":           "--max-time 5s",
	"timers create": "--due +1h --url https://hooks.example.com/",
	"usage":         "--from 2026-11-01 --to 2026-12-01",
	"align":         "--metric cpu --from 2026-11-01",
	"trail":         "--scope s --request r",

	"alerts apply": "--file ../../deploy/alerts/example.yaml",
	"alerts test":  "--file ../../deploy/alerts/example.yaml",

	"docs unlock":   "--force",
	"streams apply": "--replicas 1",

	"usage close":       "--month 2026-01 --into app",
	"usage corrections": "--month 2026-01 --into app",
}

// serverless are verbs that ask no server, or start their own.
var serverless = map[string]bool{
	"up": true, "bench": true, "version": true, "config": true, "config check": true, "config show": true, "config nats": true, "config clickhouse": true, "help": true, "man": true,
	"topics": true, "alerts": true, "audit": true, "dead": true, "docs": true, "timers": true, "timers groups": true, "completion": true,
	"mcp":     true,                                                                              // its tools ask a gateway when they are called
	"ready":   true,                                                                              // it asks a process
	"restore": true,                                                                              // it reads its backup first
	"token":   true, "token add": true, "token ls": true, "token rm": true, "token rotate": true, // a file
	"router": true, "sink": true, "gateway": true, "timers run": true, // they wait for their servers, and log that they do
}

// Where no server answers, each verb says which and what to do. Text in a
// flag that is a size, a time or a number is refused before.
func TestServersThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	for words, c := range verbs(t) {
		if serverless[words] || strings.HasPrefix(words, "completion ") {
			continue
		}
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			args := withArguments(words, c, "app")
			args = append(args, "--nats", "nats://127.0.0.1:1", "--clickhouse", "http://127.0.0.1:1/almanac")
			refused(t, args, inProcess(t, args...), exitFailed, []string{"127.0.0.1:1"}, "start it", "start the server")
		})
	}
}

// withArguments is a whole call of a verb, about a topic.
func withArguments(words string, c *cobra.Command, topic string) []string {
	args := strings.Fields(words)
	for _, name := range placeholders(c.Use) {
		switch {
		case name == "TOPIC":
			args = append(args, topic)
		case name == "LETTER":
			args = append(args, "4711@2026-11-20T12:00:00Z")
		case name == "STREAM":
			args = append(args, "TIMERS")
		case name == "SEQ" || name == "NUMBER":
			args = append(args, "1")
		case strings.HasPrefix(name, "STATEMENT") || name == "SQL":
			args = append(args, "SELECT 1")
		case strings.HasPrefix(name, "FILE"):
		default:
			args = append(args, "0123456789abcdef")
		}
	}
	return append(args, strings.Fields(complete[words])...)
}

// A topic that is not declared is named, and so is the nearest that is.
func TestUnknownTopics(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	for words, c := range verbs(t) {
		names := placeholders(c.Use)
		if words == "topics apply" || len(names) == 0 || names[0] != "TOPIC" {
			continue
		}
		t.Run(words, func(t *testing.T) {
			args := append(withArguments(words, c, "ap"), "--data", b.data())
			r := inProcess(t, args...)
			refused(t, args, r, exitUsage, []string{`"ap"`, "app"}, "did you mean app?")
			contains(t, r.err, "did you mean app? Declared: app. Declare it with `almanac topics apply ap")
		})
	}
}

// Text in place of a size, a time, a length of time or a number.
func TestBadValuesOfFlags(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	measures := map[string]bool{"SIZE": true, "TIME": true, "LENGTH": true, "NUMBER": true, "SPEED": true, "FORMAT": true, "RATE": true, "LEVEL": true, "SPAN": true, "DURATION": true}
	checked := 0
	for words, c := range verbs(t) {
		if serverless[words] && !strings.HasPrefix(words, "config ") && words != "router" && words != "sink" && words != "gateway" && words != "restore" {
			continue
		}
		for _, f := range flags(c) {
			if name, _ := pflag.UnquoteUsage(f); f.Value.Type() != "string" || !measures[name] {
				continue
			}
			checked++
			t.Run(fmt.Sprintf("%s --%s", words, f.Name), func(t *testing.T) {
				given := withArguments(words, c, "app")
				if words == "usage" && f.Name == "at" { // which does not go with a range
					given = []string{"usage", "app"}
				}
				args := append(given, "--data", b.data(), "--"+f.Name+"=1x!")
				r := inProcess(t, args...)
				refused(t, args, r, exitUsage, []string{cmp.Or(f.Shorthand, f.Name), `1x!`}, "such as", "almanac dead ls", "formats are", "none of", "give ", "expected", "one of", "the first of")
			})
		}
	}
	if checked < 30 {
		t.Errorf("only %d flags were checked", checked)
	}
}

// One thing is not many, and a dry run says what would be.
func TestOneThingAndDryRuns(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	b.ok(`{"user_id":"u-1","message":"x"}`+"\n", "send", "app", "--format", "ndjson")
	b.inTheEnd(1)
	for _, c := range []struct{ args, says string }{
		{"replay app", "1 event replayed"},
		{"erase app --user u-1 --dry-run", "1 event in 1 shard would go; nothing was changed"},
		{"topics apply fresh --dry-run", "would be created"},
		{"topics apply app --keep-days 9000 --dry-run", "would be changed"},
		{"topics apply app --dry-run", "would stay unchanged"},
		{"erase app --user u-1 --yes", "erased  1 event in 1 shard; ClickHouse has 0 rows of them now"},
	} {
		r := b.run("", strings.Fields(c.args)...)
		if r.code != exitOK || !strings.Contains(r.out+r.err, c.says) {
			t.Errorf("%s: exit %d, %q is not in:\n%s%s", c.args, r.code, c.says, r.out, r.err)
		}
	}
	if out := b.ok("", "topics", "ls"); strings.Contains(out, "fresh") {
		t.Error("a dry run declared a topic")
	}
}

// What a first user met by hand, each with its next step.
func TestRefusalsMetByHand(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	// A spool is looked for before anything ever ran, and the first start takes the directory all the same.
	r := b.run("x\n", "send", "app", "--full", "spool", "--timeout", "1s")
	refused(t, []string{"send --full spool"}, r, exitFailed, []string{"no Almanac is running", "topic app"}, "almanac up")
	if strings.Contains(r.err, "127.0.0.1") {
		t.Errorf("it names an address that nothing named: %s", r.err)
	}
	below := []string{"up", "--data", filepath.Join(os.DevNull, "x")}
	refused(t, below, b.run("", below...), exitFailed, []string{os.DevNull}, "by --data")
	b.up()
	b.ok("", "topics", "apply", "hashed", "--pii", "user_id:hash")
	var cut bytes.Buffer
	z := gzip.NewWriter(&cut)
	_, _ = z.Write([]byte(lines(5000)))
	_ = z.Close()
	dir := t.TempDir()
	b.ok("x\n", "send", "app")
	for _, c := range []struct {
		stdin, args string
		code        int
		names       []string
		next        string
	}{
		{"x\n", "send hashed", exitUsage, []string{"hashed"}, "ALMANAC_PII_KEY_FILE"},
		{cut.String()[:cut.Len()-100], "send app", exitFailed, []string{"cut short"}, "send what is missing"},
		{"", "send app /no/such/file", exitFailed, []string{"/no/such/file", "does not exist"}, "cannot open"},
		{"", "send app " + dir, exitFailed, []string{dir, "is a directory"}, "cannot read"},
		{"", "docs get customers x", exitUsage, []string{"customers"}, "almanac topics apply customers --kind document"},
		{"", "usage bytes --from -1h --to now", exitUsage, []string{"bytes"}, "almanac topics apply bytes --kind meter"},
		{"", "series cpu", exitUsage, []string{"cpu"}, "almanac topics apply cpu --kind metric"},
		{"", "trail iam --scope p/x --open", exitUsage, []string{"iam"}, "almanac topics apply iam --kind audit"},
		{"", "trail app --scope p/x --open", exitUsage, []string{"app"}, "almanac topics apply NAME --kind audit"},
		{"", "audit seal trail", exitUsage, []string{"trail"}, "almanac topics apply trail --kind audit"},
		{"", "timers groups show mails", exitUsage, []string{`"mails"`}, "almanac timers groups apply mails"},
		{"", "topics apply app --keep-days 1 --dry-run", exitOK, []string{"after 1 day,"}, "replay window"},
		{"", "query app --nats nats://127.0.0.1:1 --clickhouse clickhouse://h", exitConfig, []string{`"h"`}, "host:9000"},
	} {
		args := strings.Fields(c.args)
		refused(t, args, b.run(c.stdin, args...), c.code, c.names, c.next)
	}
	r = b.run("", "query", "app", "--where", "`Airport Name` = 'x'")
	contains(t, r.err, "attributes['Airport Name']")
	if r := b.run("", "query", "app", "--where", "attributes['Airport Name'] = 'x'"); r.code != exitOK {
		t.Errorf("what the message says is refused: %s", r.err)
	}
	r = b.run("", "config", "check", "--nats", "nats://127.0.0.1:1")
	contains(t, r.err, "not checked", "no server answers")
}

// Whatever a ctrl-C breaks off, in whichever library's words, the code is 130.
func TestInterruptedIs130(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		nil, errInterrupted, context.Canceled, stopped{os.Interrupt},
		fmt.Errorf("rebuild: looking at app: %w", errors.New("dial tcp 127.0.0.1:9000: operation was canceled")),
		usageError{errors.New("waiting was broken off")},
	} {
		if code := exitCode(err, os.Interrupt); code != exitInterrupted {
			t.Errorf("%v: exit %d", err, code)
		}
	}
	if code := exitCode(errPartial, os.Interrupt); code != exitPartial {
		t.Errorf("what was done in part: exit %d", code)
	}
	if code := exitCode(errors.New("x"), nil); code != exitFailed {
		t.Errorf("without a signal: exit %d", code)
	}
}
