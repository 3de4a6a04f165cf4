package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// halfWait is what commands of a test are given where they wait by themselves: longer than any busy machine needs, and shorter than what run waits for
// them, so that they say what did not come.
func halfWait() string { return (maxWait / 2).String() }

// waiting returns the arguments of a verb with a --wait of halfWait, where it has that flag and the test gave none: on a busy machine
// what was sent a moment ago may take longer to be stored than the default.
func waiting(args []string) []string {
	cmd, _, err := (&app{}).root().Find(args)
	if err != nil || cmd.Flags().Lookup("wait") == nil || slices.ContainsFunc(args, func(a string) bool { return a == "--wait" || strings.HasPrefix(a, "--wait=") }) {
		return args
	}
	end := len(args)
	if at := slices.Index(args, "--"); at >= 0 {
		end = at
	}
	return slices.Insert(slices.Clone(args), end, "--wait="+halfWait())
}

// The flag is added to verbs that have it, before what follows --, and not to one that was given it.
func TestWaiting(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"sql SELECT(1)":               "sql SELECT(1) --wait=" + halfWait(),
		"sql -o csv -- SELECT(1)":     "sql -o csv --wait=" + halfWait() + " -- SELECT(1)",
		"sql --wait 1s SELECT(1)":     "sql --wait 1s SELECT(1)",
		"sql --wait=1s SELECT(1)":     "sql --wait=1s SELECT(1)",
		"usage stored --from -1d":     "usage stored --from -1d --wait=" + halfWait(),
		"query app --count -o table":  "query app --count -o table",
		"no-such-verb --wait-for-all": "no-such-verb --wait-for-all",
	} {
		args := strings.Fields(given)
		if got := strings.Join(waiting(args), " "); got != want || strings.Join(args, " ") != given {
			t.Errorf("%s became %s, want %s", given, got, want)
		}
	}
}

// try calls the command once. Other than ok it returns what went wrong: for what is asked until it succeeds.
func (b *box) try(args ...string) (string, error) {
	b.t.Helper()
	r := b.run("", args...)
	if r.code != exitOK {
		return r.out, fmt.Errorf("almanac %s: exit %d: %s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r.out, nil
}

// inTheEndReady waits until ready says so: a busy server may not answer it in time.
func (b *box) inTheEndReady(flags ...string) {
	b.t.Helper()
	embeddedtest.Eventually(b.t, maxWait, func() error {
		_, err := b.try(append([]string{"ready"}, flags...)...)
		return err
	})
}

// tryDecoded is decoded that returns what went wrong, as try does.
func tryDecoded[T any](b *box, args ...string) (v T, err error) {
	b.t.Helper()
	text, err := b.try(args...)
	if err == nil {
		err = json.Unmarshal([]byte(text), &v)
		if short := shortTime.FindString(text); err == nil && short != "" {
			b.t.Errorf("almanac %s: the time %s does not have nine digits", strings.Join(args, " "), short)
		}
	}
	return v, err
}

// examined is what doctor says where no check failed; the machine's own disk may be worth a warning. It asks again
// where a busy server did not answer in time.
func (b *box) examined(args ...string) (said string) {
	b.t.Helper()
	embeddedtest.Eventually(b.t, 3*maxWait, func() error {
		r := b.run("", append([]string{"doctor"}, args...)...)
		if said = r.out; r.code != exitOK && r.code != exitPartial {
			return fmt.Errorf("doctor: exit %d: %s%s", r.code, r.out, r.err)
		}
		return nil
	})
	return said
}

// anyCode is for diagnosed, where the words alone are what the test is of.
const anyCode = -1

// diagnosed asks doctor until it ends with the code and says all words, and returns all it said then, with single blanks: a busy server may not
// answer the first time.
func (b *box) diagnosed(code int, words ...string) (said string) {
	b.t.Helper()
	embeddedtest.Eventually(b.t, 3*maxWait, func() error {
		r := b.run("", "doctor")
		said = strings.Join(strings.Fields(r.out+" "+r.err), " ")
		if code != anyCode && r.code != code {
			return fmt.Errorf("doctor: exit %d, want %d: %s", r.code, code, said)
		}
		for _, w := range words {
			if !strings.Contains(said, w) {
				return fmt.Errorf("doctor does not say %q: %s", w, said)
			}
		}
		return nil
	})
	return said
}

// duration is the setting of a test's command in its environment, where it has one.
func duration(text string, set *time.Duration) {
	if d, err := time.ParseDuration(text); err == nil {
		*set = d
	}
}
