/** Says whether a version is one the caller expects. */
export type VersionExpectation = (version: number) => boolean;
