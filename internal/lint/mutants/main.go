package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	n := flag.Int("n", 200, "how many mutants")
	seed := flag.Uint64("seed", rand.Uint64(), "what repeats a draw")
	also := flag.String("also", "", "`PACKAGES` whose tests a survivor must pass too, with commas between")
	limit := flag.Duration("limit", 2*time.Minute, "how long a package's tests may run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, draw{n: *n, seed: *seed, limit: *limit, also: strings.FieldsFunc(*also, func(r rune) bool { return r == ',' })}, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// place is a mutant of a file.
type place struct {
	mutant
	pkg, path, src string
	name           string // of the file, as people know it
}

// draw is what is tried.
type draw struct {
	n     int
	seed  uint64
	limit time.Duration
	also  []string
}

func run(ctx context.Context, d draw, packages []string) error {
	places, err := find(ctx, packages)
	if err != nil {
		return err
	}
	if len(places) == 0 {
		return errors.New("no place to change: name packages, such as ./schemas/checkpoint")
	}
	fmt.Printf("%d places, seed %d\n", len(places), d.seed)
	dir, err := os.MkdirTemp("", "almanac-mutants-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	rnd := rand.New(rand.NewPCG(d.seed, 1))
	rnd.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	tried, killed := 0, 0
	for i := range places {
		if tried == d.n || ctx.Err() != nil {
			break
		}
		p := &places[i]
		switch result, err := d.test(ctx, dir, p); {
		case err != nil:
			return err
		case result == survives:
			tried++
			fmt.Printf("survives  %s:%d  %s\n", p.name, p.Line, p.What)
		case result == isKilled:
			tried++
			killed++
		}
	}
	fmt.Printf("%d of %d killed (%.0f %%)\n", killed, tried, 100*float64(killed)/float64(max(tried, 1)))
	return ctx.Err()
}

// find returns the mutants of packages.
func find(ctx context.Context, packages []string) ([]place, error) {
	if len(packages) == 0 {
		return nil, nil
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-f", "{{.ImportPath}}\t{{.Dir}}\t{{join .GoFiles \" \"}}\t{{.Module.Path}}"}, packages...)...)
	list, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var out []place
	for line := range strings.Lines(string(list)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 4 {
			continue
		}
		f[3] = strings.TrimPrefix(f[0], f[3]+"/")
		for _, name := range strings.Fields(f[2]) {
			path := filepath.Join(f[1], name)
			src, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			all, err := mutants(string(src))
			if err != nil {
				return nil, err
			}
			for _, m := range all {
				out = append(out, place{m, f[0], path, string(src), filepath.Join(f[3], name)})
			}
		}
	}
	return out, nil
}

type result int

const (
	isKilled result = iota
	survives
	isInvalid // it does not compile
)

// test runs the tests of a mutant's package, and of those that a survivor must pass too.
func (d *draw) test(ctx context.Context, dir string, p *place) (result, error) {
	file, overlay := filepath.Join(dir, filepath.Base(p.path)), filepath.Join(dir, "overlay.json")
	replaced, err := json.Marshal(map[string]map[string]string{"Replace": {p.path: file}})
	if err == nil {
		err = errors.Join(os.WriteFile(file, []byte(p.apply(p.src)), 0o600), os.WriteFile(overlay, replaced, 0o600))
	}
	if err != nil {
		return 0, err
	}
	if err := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, p.pkg).Run(); err != nil {
		return isInvalid, ctx.Err()
	}
	found := filepath.Join(filepath.Dir(p.path), "testdata", "rapid") // where a property keeps what failed
	if _, err := os.Stat(found); errors.Is(err, os.ErrNotExist) {
		defer func() { _ = os.RemoveAll(found) }()
	}
	for _, pkg := range append([]string{p.pkg}, d.also...) {
		cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-vet=off", "-overlay", overlay, "-timeout", d.limit.String(), pkg)
		if cmd.Run() != nil {
			return isKilled, ctx.Err()
		}
	}
	return survives, nil
}
