"""The encoding family of file versions 2.1 and later: structural layouts with repetition and definition levels."""
