package redistest

import "errors"

// hasRoom is unknown here.
func hasRoom(string, uint64) bool { return false }

func (p *process) pause() error { return errors.ErrUnsupported }

func (p *process) resume() error { return errors.ErrUnsupported }
