"""The Messages API as data: types, validation, events. No HTTP, no torch."""
