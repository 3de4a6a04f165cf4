package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/access/keep"
)

func (a *app) tokenRotate(_ context.Context, cmd *cobra.Command, args []string) error {
	path, err := tokensFile(cmd)
	if err != nil {
		return err
	}
	now := time.Now()
	text, _ := cmd.Flags().GetString("overlap")
	overlap, ok := parseSpan(text)
	if !ok || overlap < 0 {
		return usageError{fmt.Errorf("--overlap: %q is not a span such as 24h", text)}
	}
	var end time.Time
	if text, _ := cmd.Flags().GetString("expires"); text != "" {
		if end, err = ends(text, now); err != nil {
			return usageError{fmt.Errorf("--expires: %w", err)}
		}
	}
	var secret string
	var until time.Time
	err = keep.Change(path, func(all []access.Token) (out []access.Token, err error) {
		secret, until, out, err = rotated(all, args[0], overlap, end, now)
		return out, err
	})
	if err != nil {
		return err
	}
	if until.After(now) {
		a.note("the new secret of %q, shown once; the old one is valid until %s", args[0], until.Format(time.RFC3339))
	} else {
		a.note("the new secret of %q, shown once; what runs refuses the old one within two seconds", args[0])
	}
	_, err = fmt.Fprintln(a.stdout, secret)
	return err
}

// rotated gives the newest token of a name a new secret, and the old secret an end: after the overlap, or at its own end where that is
// before. A zero end of the new secret is that of the old one.
func rotated(all []access.Token, name string, overlap time.Duration, end, now time.Time) (secret string, until time.Time, out []access.Token, err error) {
	i := tokenOf(all, name)
	switch {
	case i < 0:
		return "", until, nil, noToken(name, all)
	case all[i].Subject != "":
		return "", until, nil, usageError{fmt.Errorf("token %q has no secret: it is who shows a certificate of %s, which its CA renews", name, all[i].Subject)}
	case end.IsZero() && !all[i].Expires.IsZero() && !now.Before(all[i].Expires):
		return "", until, nil, usageError{fmt.Errorf("token %q ended %s, and a new secret would be refused at once: pass --expires with a new end, such as 90d", name, all[i].Expires.Format(time.RFC3339))}
	}
	next, old := all[i], &all[i]
	var id string
	secret, id = access.NewSecret()
	next.ID, next.Digest = id, access.DigestOf(secret)
	if !end.IsZero() {
		next.Expires = end
	}
	if until = now.Add(overlap).UTC().Truncate(time.Second); old.Expires.IsZero() || until.Before(old.Expires) {
		old.Expires = until
	}
	until = old.Expires
	if overlap == 0 {
		all = slices.DeleteFunc(all, func(t access.Token) bool { return t.Name == name })
	}
	return secret, until, append(all, next), nil
}
