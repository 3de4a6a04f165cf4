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
	"unicode/utf8"

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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		look *topLook
		err  error
	}
	// Servers that are away take seconds, and keys are not to wait for them.
	looks, asking := make(chan answer, 1), false
	ask := func() {
		if !asking {
			asking = true
			go func() { l, err := look(ctx); looks <- answer{l, err} }()
		}
	}
	var v topView
	l := &topLook{}
	tick := time.NewTicker(topEvery)
	defer tick.Stop()
	for ask(); !v.ended; {
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
		case a := <-looks:
			if asking = false; a.err != nil {
				return a.err
			}
			l = a.look
		case <-tick.C:
			if !v.paused {
				ask()
			}
		}
	}
	return nil
}

// draw is a look as a page of a size.
func draw(l *topLook, v topView, width, height int) string {
	if l.At.IsZero() {
		return cut("asking the servers\n\ns sort  t topic  p pause  q quit", width, height)
	}
	words := []string{l.At.Local().Format(time.TimeOnly), "sorted by " + topSorts[v.sort].name}
	if v.paused {
		words[1] += ", paused"
	}
	if l.Memory > 0 {
		words = append(words, "memory "+schemas.FormatBytes(float64(l.Memory)))
	}
	for _, role := range slices.Sorted(maps.Keys(l.Members)) {
		words = append(words, fmt.Sprintf("%ss %d", role, l.Members[role]))
	}
	var b strings.Builder
	b.WriteString(wrap(words, width) + "\n")
	for _, away := range l.Away {
		fmt.Fprintf(&b, "%s is away since %s: %s\n", away.Server, away.Since.Local().Format(time.TimeOnly), printable(away.Why))
	}
	if l.Unasked != "" {
		fmt.Fprintf(&b, "no rates: %s\n", printable(l.Unasked))
	}
	topics := slices.Clone(l.Topics)
	slices.SortStableFunc(topics, func(x, y topTopic) int { return topSorts[v.sort].less(&x, &y) })
	topics = slices.DeleteFunc(topics, func(x topTopic) bool { return v.topic != "" && v.topic != x.Topic })
	b.WriteString("\n" + fitting(topColumns, topics, width) + "\n")
	if len(l.Inputs) > 0 {
		b.WriteString("\n" + fitting(topInputColumns, l.Inputs, width) + "\n")
	}
	b.WriteString("\n" + wrap(streamsOf(l.Streams), width) + "\ns sort  t topic  p pause  q quit")
	return cut(b.String(), width, height)
}

// topColumn is a column of a table of top. Where there is no room for all, those with the highest numbers go first.
type topColumn[T any] struct {
	name string
	goes int
	cell func(x *T) any
}

var topColumns = []topColumn[topTopic]{
	{"topic", 0, func(x *topTopic) any { return printable(x.Topic) }},
	{"accepted/s", 2, func(x *topTopic) any { return perSecond(x.Accepted) }},
	{"stored/s", 3, func(x *topTopic) any { return perSecond(x.Stored) }},
	{"behind s", 1, func(x *topTopic) any { return fmt.Sprintf("%.1f", x.behind()) }},
	{"not routed", 6, func(x *topTopic) any { return x.Unrouted }},
	{"not stored", 5, func(x *topTopic) any { return orUnknown(x.Unstored, "%d") }},
	{"shards", 7, func(x *topTopic) any { return x.Shards }},
	{"active", 8, func(x *topTopic) any { return x.Active }},
	{"dead", 4, func(x *topTopic) any { return x.Letters }},
}

var topInputColumns = []topColumn[topInput]{
	{"input", 0, func(x *topInput) any { return printable(x.Input) }},
	{"events/s", 1, func(x *topInput) any { return perSecond(x.PerSecond) }},
	{"refused/s", 3, func(x *topInput) any { return perSecond(x.Refused) }},
	{"last s ago", 2, func(x *topInput) any { return fmt.Sprintf("%.0f", x.Age) }},
}

// fitting is a table with as many columns as a width has room for, two at least; 0: all.
func fitting[T any](columns []topColumn[T], rows []T, width int) string {
	columns = slices.Clone(columns)
	for {
		names := make([]string, len(columns))
		for i := range columns {
			names[i] = columns[i].name
		}
		t := newTable(names...)
		numbers(t, names[1:]...)
		for i := range rows {
			row := make(table.Row, len(columns))
			for k := range columns {
				row[k] = columns[k].cell(&rows[i])
			}
			t.AppendRow(row)
		}
		text := t.Render()
		if width <= 0 || len(columns) <= 2 || widest(text) <= width {
			return text
		}
		least := slices.MaxFunc(columns, func(x, y topColumn[T]) int { return cmp.Compare(x.goes, y.goes) }).goes
		columns = slices.DeleteFunc(columns, func(c topColumn[T]) bool { return c.goes == least })
	}
}

func widest(text string) (n int) {
	for line := range strings.Lines(text) {
		n = max(n, utf8.RuneCountInString(strings.TrimRight(line, "\n")))
	}
	return n
}

// wrap puts parts two blanks apart, on as many lines as a width asks for; 0: on one.
func wrap(parts []string, width int) string {
	var b strings.Builder
	at := 0
	for i, part := range parts {
		n := utf8.RuneCountInString(part)
		switch {
		case i == 0:
		case width > 0 && at+2+n > width:
			b.WriteString("\n")
			at = 0
		default:
			b.WriteString("  ")
			at += 2
		}
		b.WriteString(part)
		at += n
	}
	return b.String()
}

func streamsOf(all []query.StreamUse) (parts []string) {
	for _, s := range all {
		name := s.Stream
		if name == schemas.KVStream {
			name = registryStream
		}
		parts = append(parts, name+" "+fullness(s))
	}
	return parts
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
