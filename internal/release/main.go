package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// sbomTool writes the list of components. It is a program of its own: the product does not need it.
const sbomTool = "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0"

// defaultTargets are the systems that the engine's library exists for.
const defaultTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64"

// target is a system to build for.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

// options are what a release is made of.
type options struct {
	version, out string
	targets      []target
	sbom, dirty  bool
}

func main() {
	var o options
	var targets string
	flag.StringVar(&o.version, "version", "", "`VERSION` that the binary says (default: git describe)")
	flag.StringVar(&o.out, "o", "dist", "`DIR` to write to; it must be empty or absent")
	flag.StringVar(&targets, "targets", defaultTargets, "`SYSTEMS` to build for")
	flag.BoolVar(&o.sbom, "sbom", true, "write a list of components beside each archive")
	flag.BoolVar(&o.dirty, "dirty", false, "build a tree with changes: for trying, not for a release")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if o.targets, err = parseTargets(targets); err == nil {
		err = release(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		stop()
		os.Exit(1)
	}
}

// parseTargets reads "os/arch,os/arch".
func parseTargets(text string) (all []target, err error) {
	for _, one := range strings.Split(text, ",") {
		system, arch, found := strings.Cut(strings.TrimSpace(one), "/")
		if !found || system == "" || arch == "" {
			return nil, fmt.Errorf("target %q is not SYSTEM/ARCH, such as linux/amd64", one)
		}
		all = append(all, target{system, arch})
	}
	return all, nil
}

func release(ctx context.Context, o options) error {
	c, err := readCommit(ctx)
	if err != nil {
		return err
	}
	if c.changed && !o.dirty {
		return fmt.Errorf("the tree has changes that commit %.12s does not have: commit them, or try with -dirty", c.id)
	}
	if o.version == "" {
		o.version = c.described
	}
	page, err := readPage(pageDir, pageLock)
	if err != nil {
		return err
	}
	if entries, err := os.ReadDir(o.out); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty: name another directory with -o, or remove it", o.out)
	}
	work, err := os.MkdirTemp("", "almanac-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	manual, err := writeManual(ctx, o, work)
	if err != nil {
		return err
	}
	for _, t := range o.targets {
		if err := releaseTarget(ctx, o, c, t, work, page, manual); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		fmt.Println("built", t)
	}
	return writeSums(o.out, page.digest)
}

// releaseTarget builds one system's binary and writes its archive and its list of components.
func releaseTarget(ctx context.Context, o options, c commit, t target, work string, p page, manual []file) error {
	binary := filepath.Join(work, t.os+"-"+t.arch, "almanac")
	if err := build(ctx, o.version, t, binary); err != nil {
		return err
	}
	licences, err := readLicences(ctx, t)
	if err != nil {
		return err
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	files := append([]file{{name: "almanac", mode: 0o755, data: program}, {name: "licences/page.txt", mode: 0o644, data: p.licences}}, manual...)
	name := fmt.Sprintf("almanac_%s_%s_%s", strings.TrimPrefix(o.version, "v"), t.os, t.arch)
	if err := writeArchive(filepath.Join(o.out, name+".tar.gz"), name, c.at, append(files, licences...)); err != nil || !o.sbom {
		return err
	}
	list := filepath.Join(work, name+".cdx.json")
	if err := run(ctx, nil, "go", "run", sbomTool, "bin", "-json", "-std", "-licenses", "-assert-licenses", "-noserial", "-notimestamp",
		"-version", o.version, "-output", list, binary); err != nil {
		return err
	}
	modules, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	components, err := addComponents(modules, p.packages)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, name+".cdx.json"), components, 0o644)
}

// build compiles almanac for one system.
func build(ctx context.Context, version string, t target, to string) error {
	return run(ctx, []string{"CGO_ENABLED=0", "GOOS=" + t.os, "GOARCH=" + t.arch},
		"go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+version, "-o", to, "./cmd/almanac")
}

// run runs a program; what it says is part of the error.
func run(ctx context.Context, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, said)
	}
	return nil
}
