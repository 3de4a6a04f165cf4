package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// commit is what a release is made from.
type commit struct {
	id, described string
	at            time.Time
	// changed: the tree is not the commit's.
	changed bool
}

func readCommit(ctx context.Context) (c commit, err error) {
	said := func(args ...string) (text string) {
		if err != nil {
			return ""
		}
		out, e := exec.CommandContext(ctx, "git", args...).Output()
		if e != nil {
			err = fmt.Errorf("git %s: %w: a release is made in a clone of the repository", strings.Join(args, " "), e)
		}
		return strings.TrimSpace(string(out))
	}
	c.id = said("rev-parse", "HEAD")
	c.described = said("describe", "--tags", "--always")
	c.changed = said("status", "--porcelain") != ""
	seconds := said("show", "-s", "--format=%ct", "HEAD")
	if err != nil {
		return commit{}, err
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return commit{}, fmt.Errorf("git show: time of the commit: %w", err)
	}
	c.at = time.Unix(n, 0).UTC()
	return c, nil
}
