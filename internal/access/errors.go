package access

import "errors"

// Reason is why a request is refused for who sent it: a word for counts, which the client is not told.
type Reason string

// The reasons.
const (
	ReasonMalformed   Reason = "malformed"   // not the form of a secret
	ReasonUnknown     Reason = "unknown"     // no token has the id
	ReasonWrong       Reason = "wrong"       // the secret is another
	ReasonExpired     Reason = "expired"     // the token or the certificate ended
	ReasonNetwork     Reason = "network"     // the token is for other networks
	ReasonCertificate Reason = "certificate" // no token has the subject
	ReasonNone        Reason = "none"        // there is no token, and one is needed
	ReasonDenied      Reason = "denied"      // the token does not have the role
)

// Reasons are all of them.
func Reasons() []Reason {
	return []Reason{ReasonMalformed, ReasonUnknown, ReasonWrong, ReasonExpired, ReasonNetwork, ReasonCertificate, ReasonNone, ReasonDenied}
}

// Remedy says what the operator does about it. The name is that of the token, which is empty where none is known.
func (r Reason) Remedy(name string) string {
	switch r {
	case ReasonMalformed, ReasonUnknown, ReasonWrong:
		return "give that client a secret that `almanac token add` or `almanac token rotate` printed, or close its network off before the listener"
	case ReasonExpired:
		return "`almanac token rotate " + name + " --expires 90d` gives it a new secret; a certificate is renewed by its CA"
	case ReasonNetwork:
		return "add its network to from of the token in tokens_file, where the client is yours"
	case ReasonCertificate:
		return "`almanac token add NAME --subject SUBJECT` makes a token of it, where the client is yours"
	case ReasonDenied:
		return "give that client a token that has the role, where it is to do this"
	default:
		return "give that client a token, where it is yours"
	}
}

// unauthenticated is ErrUnauthenticated with a reason, and the name of the token where it is known, that its text does not tell.
type unauthenticated struct {
	reason Reason
	name   string
}

func (*unauthenticated) Error() string { return ErrUnauthenticated.Error() }

func (*unauthenticated) Is(err error) bool { return err == ErrUnauthenticated }

// NameOf returns the name of the known token that an error of this package refuses; empty: there is none.
func NameOf(err error) string {
	var one *unauthenticated
	var denied *Denied
	switch {
	case errors.As(err, &one):
		return one.name
	case errors.As(err, &denied):
		return denied.Name
	}
	return ""
}

// ReasonOf returns why an error of this package refuses.
func ReasonOf(err error) Reason {
	var one *unauthenticated
	var denied *Denied
	switch {
	case errors.As(err, &one):
		return one.reason
	case errors.As(err, &denied) && (denied.Name != "" || denied.Own):
		return ReasonDenied
	}
	return ReasonNone
}

// Errors of this package.
var (
	// ErrUnauthenticated is a secret that is missing where one is asked for, or not a token's. One text for all reasons.
	ErrUnauthenticated = errors.New("no token, or one that is not valid here")
	// ErrToken is a description of a token that is not one.
	ErrToken = errors.New("not a token")
)
