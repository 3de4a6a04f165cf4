package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"golang.org/x/term"

	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// topView is what the keys chose.
type topView struct {
	sort   int    // of topSorts
	topic  string // empty: all
	paused bool
	ended  bool
}

// topSorts are the orders of topics: most first, and names as they are.
var topSorts = []struct {
	name string
	less func(a, b *topTopic) int
}{
	{"behind", func(a, b *topTopic) int { return cmp.Compare(b.behind(), a.behind()) }},
	{"accepted", func(a, b *topTopic) int { return cmp.Compare(known(b.Accepted), known(a.Accepted)) }},
	{"stored", func(a, b *topTopic) int { return cmp.Compare(known(b.Stored), known(a.Stored)) }},
	{"topic", func(a, b *topTopic) int { return cmp.Compare(a.Topic, b.Topic) }},
}

func known(n *float64) float64 {
	if n == nil {
		return -1
	}
	return *n
}

// press is what a key makes of the view.
func (v topView) press(key byte, l *topLook) topView {
	switch key {
	case 'q', 3: // Ctrl-C, which does not make a signal meanwhile
		v.ended = true
	case 's':
		v.sort = (v.sort + 1) % len(topSorts)
	case 'p':
		v.paused = !v.paused
	case 't':
		names := []string{""}
		for i := range l.Topics {
			names = append(names, l.Topics[i].Topic)
		}
		v.topic = names[(slices.Index(names, v.topic)+1)%len(names)]
	}
	return v
}

// topScreen draws looks until a key or a signal ends it.
func (a *app) topScreen(ctx context.Context, look func(context.Context) (*topLook, error)) error {
	fd := int(os.Stdin.Fd())
	old, err := term.MakeRaw(fd)
	if err != nil {
		return fmt.Errorf("the terminal: %w", err)
	}
	out := unfiltered(a.stdout) // what others wrote is printable in the tables
	_, _ = io.WriteString(out, "\x1b[?1049h\x1b[?25l")
	defer func() {
		_, _ = io.WriteString(out, "\x1b[?25h\x1b[?1049l")
		_ = term.Restore(fd, old)
	}()
	pressed := make(chan byte)
	go func() { // it ends with the process
		for b := make([]byte, 1); ; {
			if n, err := os.Stdin.Read(b); n == 0 || err != nil {
				close(pressed)
				return
			}
			pressed <- b[0]
		}
	}()
	var v topView
	l, err := look(ctx)
	if err != nil {
		return err
	}
	tick := time.NewTicker(topEvery)
	defer tick.Stop()
	for !v.ended {
		width, height, err := term.GetSize(fd)
		if err != nil {
			width, height = 80, 24
		}
		if _, err := io.WriteString(out, "\x1b[H\x1b[2J"+strings.ReplaceAll(draw(l, v, width, height), "\n", "\r\n")); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case key, ok := <-pressed:
			if !ok {
				return nil
			}
			v = v.press(key, l)
		case <-tick.C:
			if v.paused {
				continue
			}
			if l, err = look(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// draw is a look as a page of a size.
func draw(l *topLook, v topView, width, height int) string {
	var b strings.Builder
	state := ""
	if v.paused {
		state = ", paused"
	}
	fmt.Fprintf(&b, "%s  sorted by %s%s", l.At.Local().Format(time.TimeOnly), topSorts[v.sort].name, state)
	if l.Memory > 0 {
		fmt.Fprintf(&b, "  memory %s", schemas.FormatBytes(float64(l.Memory)))
	}
	for _, role := range slices.Sorted(maps.Keys(l.Members)) {
		fmt.Fprintf(&b, "  %ss %d", role, l.Members[role])
	}
	b.WriteString("\n")
	for _, away := range l.Away {
		fmt.Fprintf(&b, "%s is away since %s: %s\n", away.Server, away.Since.Local().Format(time.TimeOnly), printable(away.Why))
	}
	if l.Unasked != "" {
		fmt.Fprintf(&b, "no rates: %s\n", printable(l.Unasked))
	}
	topics := slices.Clone(l.Topics)
	slices.SortStableFunc(topics, func(x, y topTopic) int { return topSorts[v.sort].less(&x, &y) })
	t := newTable("topic", "accepted/s", "stored/s", "behind s", "not routed", "not stored", "shards", "active", "dead")
	numbers(t, "accepted/s", "stored/s", "behind s", "not routed", "not stored", "shards", "active", "dead")
	for i := range topics {
		x := &topics[i]
		if v.topic == "" || v.topic == x.Topic {
			t.AppendRow(table.Row{printable(x.Topic), perSecond(x.Accepted), perSecond(x.Stored), fmt.Sprintf("%.1f", x.behind()), x.Unrouted, orUnknown(x.Unstored, "%d"), x.Shards, x.Active, x.Letters})
		}
	}
	b.WriteString("\n" + t.Render() + "\n")
	if len(l.Inputs) > 0 {
		t = newTable("input", "events/s", "refused/s", "last s ago")
		numbers(t, "events/s", "refused/s", "last s ago")
		for _, in := range l.Inputs {
			t.AppendRow(table.Row{printable(in.Input), perSecond(in.PerSecond), perSecond(in.Refused), fmt.Sprintf("%.0f", in.Age)})
		}
		b.WriteString("\n" + t.Render() + "\n")
	}
	b.WriteString("\n" + streamsLine(l.Streams) + "\ns sort  t topic  p pause  q quit")
	return cut(b.String(), width, height)
}

func streamsLine(all []query.StreamUse) string {
	var parts []string
	for _, s := range all {
		name := s.Stream
		if name == schemas.KVStream {
			name = registryStream
		}
		parts = append(parts, name+" "+percent(s))
	}
	return strings.Join(parts, "  ")
}

// perSecond is a rate for people.
func perSecond(n *float64) string {
	if n == nil {
		return "-"
	}
	return humanCount(uint64(*n + 0.5))
}

// cut leaves of a page what a terminal has room for; the last two lines stay.
func cut(page string, width, height int) string {
	lines := strings.Split(page, "\n")
	if len(lines) > height && height > 3 {
		lines = append(lines[:height-3:height-3], append([]string{"…"}, lines[len(lines)-2:]...)...)
	}
	for i, line := range lines {
		if r := []rune(line); len(r) > width && width > 0 {
			lines[i] = string(r[:width])
		}
	}
	return strings.Join(lines, "\n")
}
