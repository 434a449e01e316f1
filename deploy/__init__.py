"""Programs that run, monitor and test a deployment. They are not part of the installed package."""
