"""The screens and dialogs. They look at the app's runs and ask it to act; none of them owns a run."""
