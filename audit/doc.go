// Package audit writes topics of kind audit: who did what to which resource, and what it was
// before and after.
//
// # Model
//
// A request has activity (Record) and changes of resources. A change is announced before it
// is made and concluded afterwards:
//
//	change := audit.Change{Request: id, Scope: "projects/p", Service: "iam", Method: "UpdateRole", Type: "role", Resource: "roles/x", Actor: "u-7", Before: old, After: new}
//	if err := trail.Before(ctx, change); err != nil {
//		return err // the change must not be made
//	}
//	if err := store.Update(ctx, …); err != nil {
//		return errors.Join(err, trail.After(ctx, change, audit.RolledBack))
//	}
//	return trail.After(ctx, change, audit.Committed)
//
// Request id, resource, type, state and time together are the identity of an event. A copy
// that keeps its time counts once.
//
// # Who is authoritative
//
// Before returns nil when the announcement is stored, on disk. So no change that was made
// lacks its announcement. Whether it was made, only the application's own store knows.
//
// # Failures
//
// What no topic of kind audit takes is refused before anything is stored: schemas.ErrValue.
//
// An error of Before means that the change must not be made. When it wraps
// producer.ErrOutcomeUnknown the announcement may be stored all the same. It is then found
// as open (`almanac trail --open`), as is that of a process that died before After. After
// may be called again.
//
// Bodies longer than the topic's body_limit are cut: their length and SHA-256 are kept.
package audit
