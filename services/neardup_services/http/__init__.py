"""The HTTP API of the offline results: routes, their OpenAPI description and a server."""
