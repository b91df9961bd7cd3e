"""Tables of the manifests of versions, for stores that cannot create an object only if it is absent."""
