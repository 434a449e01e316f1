"""Programs that run, monitor and test a deployment. No part of the installed package."""
