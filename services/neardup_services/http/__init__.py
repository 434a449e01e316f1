"""The HTTP API of the results of the offline pass: routes, their OpenAPI description, and a server."""
