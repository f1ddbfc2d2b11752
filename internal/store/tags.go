package store

import "context"

// commitsLike bounds the candidates of an abbreviation.
const commitsLike = 5

// CommitsLike lists the tags of a project that are commit hashes and begin with a prefix, five at most: of artifacts, of
// requests, and of the commits of its branch. A tag that is the prefix itself, of whatever kind, is listed alone.
func (s *Store) CommitsLike(ctx context.Context, project, prefix string) ([]string, error) {
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
