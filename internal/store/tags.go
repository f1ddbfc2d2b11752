package store

import "context"

// commitsLike bounds the candidates of an abbreviation.
const commitsLike = 5

// CommitsLike lists the tags of a project that are commit hashes and begin with a prefix, five at most: of artifacts, of
// requests, and of the commits of its branch. A tag that is the prefix itself, of whatever kind, is listed alone.
func (s *Store) CommitsLike(ctx context.Context, project, prefix string) ([]string, error) {
	// Most are given in full. A plan for this can be kept; one for prefixes depends on the prefix.
	known, err := value[bool](ctx, s.pool, `
		select exists (select from artifact where project = $1 and tag = $2) or exists (select from benchmark_request where project = $1 and tag = $2)`, project, prefix)
	if err != nil {
		return nil, wrap("looking for commit "+prefix, err)
	}
	if known {
		return []string{prefix}, nil
	}
	tags, err := column[string](ctx, s.pool, `
		with known as (
			select tag from artifact where project = $1 and starts_with(tag, $2)
			union select tag from benchmark_request where project = $1 and starts_with(tag, $2)
			union select versus from benchmark_request where project = $1 and starts_with(versus, $2)
			union select sha from commit where project = $1 and starts_with(sha, $2)
		)
		select tag from known
		where tag = $2 or tag ~ '^([0-9a-f]{40}|[0-9a-f]{64})$' and not exists (select from known where tag = $2)
		order by tag limit $3`, project, prefix, commitsLike)
	return tags, wrap("looking for commits that begin with "+prefix, err)
}

// maxTags bounds the tags among which a similar one is sought.
const maxTags = 2000

// RequestedTags lists the tags of a project's newest tracked requests, for which no ID is
// needed.
func (s *Store) RequestedTags(ctx context.Context, project string) ([]string, error) {
	tags, err := column[string](ctx, s.pool, `
		select tag from benchmark_request where project = $1 and tag is not null and type <> 'adhoc' order by created_at desc, id desc limit $2`, project, maxTags)
	return tags, wrap("listing the tags of project "+project, err)
}
